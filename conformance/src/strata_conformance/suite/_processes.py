"""Several processes at work on one storage."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from strata_conformance import _child
from strata_conformance._promise import promise
from strata_conformance._runner import run
from strata_conformance.suite._base import OpenStore, PortTests, Reference
from strata_core.capabilities import Capability
from strata_core.records import LogEntry

__all__ = ["ProcessTests"]

PROCESSES: Final = 8
PATIENCE: Final = 120
"""Seconds after which processes that hang are ended."""


def _at_work(reference: Reference, *jobs: tuple[Any, ...]) -> list[Any]:
    """Let a process do each job, all at once; return what came of them."""
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, str(Path(_child.__file__))],
        input=pickle.dumps(sys.path) + pickle.dumps((reference, jobs)),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert 0 == done.returncode, f"a process on the storage failed:\n{done.stderr.decode(errors='replace')}"
    return list(json.loads(done.stdout))


def _log(open_store: OpenStore) -> list[LogEntry]:
    async def read() -> list[LogEntry]:
        entries: list[LogEntry] = []
        async with open_store() as store:
            while (entry := await store.load("t", at=len(entries))) is not None:
                entries.append(entry)
        return entries

    return run(read())


class ProcessTests(PortTests):
    """What holds between handles holds between processes: define the fixture ``reference``."""

    @pytest.fixture
    def shared(self, reference: Reference | None, open_store: OpenStore) -> Reference:
        """The storage, set up once in this process, and how another one opens it."""
        if reference is None:
            pytest.skip(f"{type(self).__name__}: no reference given, so no other process can open the storage")

        async def set_up() -> None:
            async with open_store() as store:
                await store.load("t")

        run(set_up())
        return reference

    @promise("process-1")
    @pytest.mark.requires(Capability.MULTI_PROCESS)
    def test_processes_share_one_log(self, open_store: OpenStore, shared: Reference) -> None:
        """Eight processes that save to one thread at once share one log: no sequence is given twice, none is left out,
        and each process finds its own in the order of its saves.
        """
        got = _at_work(shared, *(("save", f"p{p}", 10) for p in range(PROCESSES)))
        entries = _log(open_store)

        assert list(range(10 * PROCESSES)) == sorted(sequence for sequences in got for sequence in sequences)
        assert {sequence: {"by": f"p{p}", "n": n} for p in range(PROCESSES) for n, sequence in enumerate(got[p])} == {
            entry.sequence: entry.checkpoint.frozen_state for entry in entries
        }

    @promise("process-2")
    @pytest.mark.requires(Capability.MULTI_PROCESS)
    def test_conditional_saves_of_processes_lose_no_update(self, open_store: OpenStore, shared: Reference) -> None:
        """Eight processes that each count a thread up, by conditional saves on the revision that they loaded, count
        every step once: whoever is not the first on a revision gets ConflictError.
        """
        _at_work(shared, *(("count", f"p{p}", 5) for p in range(PROCESSES)))
        states = [entry.checkpoint.frozen_state for entry in _log(open_store)]

        assert list(range(1, 5 * PROCESSES + 1)) == [state["n"] for state in states]
        assert {f"p{p}": 5 for p in range(PROCESSES)} == {
            f"p{p}": [state["by"] for state in states].count(f"p{p}") for p in range(PROCESSES)
        }

    @promise("process-3")
    @pytest.mark.requires(Capability.MULTI_PROCESS)
    def test_a_lease_holds_between_processes(self, open_store: OpenStore, shared: Reference) -> None:
        """Of eight processes that take the lease of a thread again and again, one holds it at a time: what each loads
        and saves under it loses no update, and the tokens grow along the log.
        """
        got = _at_work(shared, *(("hold", f"p{p}", 3) for p in range(PROCESSES)))
        states = [entry.checkpoint.frozen_state for entry in _log(open_store)]
        tokens = [state["token"] for state in states]

        assert list(range(1, 3 * PROCESSES + 1)) == [state["n"] for state in states]
        assert sorted(token for taken in got for token in taken) == tokens
        assert len(tokens) == len(set(tokens))

    @promise("process-4")
    @pytest.mark.requires(Capability.MULTI_PROCESS)
    def test_a_process_whose_lease_was_taken_over_is_fenced_off(self, open_store: OpenStore, shared: Reference) -> None:
        """A process whose lease expired and was taken over by another process gets LeaseLostError from a save under it
        and from its renewal; nothing of it is appended.
        """
        outcomes, token = _at_work(shared, ("outlast", "late"), ("take_over", "next"))
        states = [entry.checkpoint.frozen_state for entry in _log(open_store)]

        assert ["LeaseLostError", "LeaseLostError"] == outcomes
        assert token > 0
        assert [{"by": "late", "n": 0}, {"by": "next", "n": 1}] == states
