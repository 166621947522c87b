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


class _Worker:
    """A process that has opened the store and waits for its start."""

    def __init__(self, reference: Reference, job: str, *arguments: Any) -> None:
        payload = pickle.dumps(sys.path) + pickle.dumps((reference, job, arguments))
        self._process = subprocess.Popen(
            [sys.executable, str(Path(_child.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # so that a line that is read leaves the rest in the pipe
        )
        assert self._process.stdin is not None
        self._process.stdin.write(payload)
        self._process.stdin.flush()

    def ready(self) -> None:
        """Wait until it says so."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self.came_to()

    def start(self) -> None:
        """Let it do its job."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def came_to(self) -> Any:
        """Wait for its end; return what came of the job."""
        out, err = self._process.communicate(timeout=PATIENCE)
        assert 0 == self._process.returncode, f"a process on the storage failed:\n{err.decode(errors='replace')}"
        return json.loads(out)

    def end(self) -> None:
        """End it, if it runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _at_work(*workers: _Worker) -> list[Any]:
    try:
        for worker in workers:
            worker.ready()
        for worker in workers:
            worker.start()
        return [worker.came_to() for worker in workers]
    finally:
        for worker in workers:
            worker.end()


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
        got = _at_work(*(_Worker(shared, "save", f"p{p}", 10) for p in range(PROCESSES)))
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
        _at_work(*(_Worker(shared, "count", f"p{p}", 5) for p in range(PROCESSES)))
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
        got = _at_work(*(_Worker(shared, "hold", f"p{p}", 3) for p in range(PROCESSES)))
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
        late = _Worker(shared, "outlast", "late")
        next_one = _Worker(shared, "take", "next")
        try:
            for worker in (late, next_one):
                worker.ready()
            late.start()
            late.ready()  # it holds the lease
            next_one.start()
            outcomes, token = late.came_to(), next_one.came_to()
        finally:
            late.end()
            next_one.end()
        states = [entry.checkpoint.frozen_state for entry in _log(open_store)]

        assert ["LeaseLostError", "LeaseLostError"] == outcomes
        assert token > 0
        assert [{"by": "next", "n": 1}] == states
