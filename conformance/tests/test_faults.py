"""The promises of several processes, lost calls, damage and size are broken by stores that break them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

EVERY_PROCESS = "process-1 process-2 process-3 process-4"
EVERY_FAULT = "lost-1 lost-2 lost-3 lost-4 size-1 size-2 damage-1 damage-2 damage-3 damage-4 retry-1 retry-2 retry-3"

PROCESSES = """
    import functools
    import pytest
    import broken_files
    from strata_conformance import ProcessTests
    from strata_core.store import RowStore
    from strata_sqlite import SqliteBackend

    class TestStore(ProcessTests):
        @pytest.fixture
        def open_store(self, tmp_path, clock):
            return lambda **options: RowStore(SqliteBackend(tmp_path / "x.db", clock=clock), **options)

        @pytest.fixture
        def reference(self, tmp_path):
            return functools.partial({backend}, tmp_path / "x.db")
"""
ROWS = """
    import os
    import json
    import pytest
    from strata_conformance import RowBackendTests
    from strata_core.errors import CorruptCheckpointError
    from strata_core.memory import MemoryBackend

    def readable(text):
        try:
            return isinstance(json.loads(text), dict)
        except ValueError:
            return False

    class Broken(MemoryBackend):
        {broken}

    class TestStore(RowBackendTests):
        @pytest.fixture
        def open_backend(self, clock):
            backend = Broken(clock)
            return lambda: backend
"""
FORGETS_IDS = """
        async def commit(self, batch):
            done = await super().commit(batch)
            for head in self._heads.values():
                head.write_ids = os.urandom(8) + head.write_ids[8:8]
            return done
"""
FORGETS_LEASES = """
        async def commit(self, batch):
            done = await super().commit(batch)
            for head in self._heads.values():
                head.lease_id = bytes(8)
            return done
"""
LEAVES_ROWS_OUT = """
        async def read(self, thread_id, first, last):
            rows = await super().read(thread_id, first, last)
            return [row for row in rows if readable(row.body)]
"""
LEAVES_THREADS_OUT = """
        async def list_heads(self, query):
            return [head for head in await super().list_heads(query) if not head.envelope or readable(head.envelope)]
"""
STOPS_AT_DAMAGE = """
        async def commit(self, batch):
            for commit in batch:
                rows = self._rows.get(commit.thread_id)
                if rows and not readable(rows[-1].body):
                    raise CorruptCheckpointError(commit.thread_id, rows[-1].sequence, "cannot be read")
            return await super().commit(batch)
"""
READS_A_THOUSAND = """
        async def read(self, thread_id, first, last):
            return (await super().read(thread_id, first, last))[:1000] if (first or 0) < 1000 else []
"""
CUTS_MEGABYTES = """
        async def commit(self, batch):
            for commit in batch:
                if commit.row is not None and len(commit.row.body) > 4_000_000:
                    commit.row.body = b'{}'
            return await super().commit(batch)
"""
SWALLOWS_DAMAGE = """
        pass

    from strata_core.store._leases import Leases
    from strata_core.store._reading import Reader

    _load = Reader.load

    async def load(self, thread_id, at):
        try:
            return await _load(self, thread_id, at)
        except CorruptCheckpointError:
            return None

    @pytest.fixture(autouse=True)
    def swallowing(monkeypatch):
        monkeypatch.setattr(Reader, "load", load)
"""


class _Only:
    """Keeps the tests of some promises, as a pytest plugin."""

    def __init__(self, promises: str) -> None:
        self._promises = set(promises.split())

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.function.__strata_promise__.id in self._promises]


def judged(pytester: pytest.Pytester, body: str, promises: str) -> dict[str, str]:
    """Run the tests of these promises; return the outcome of each."""
    pytester.makepyfile(body)
    pytester.runpytest_inprocess(
        "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--strata-json=report",
        plugins=[_Only(promises)],
    )  # fmt: skip
    report = json.loads((pytester.path / "report").read_text())
    return {name: found["outcome"] for name, found in report["stores"]["TestStore"]["promises"].items()}


@pytest.mark.parametrize(
    ("backend", "broken"),
    [
        ("SqliteBackend", ""),
        ("broken_files.Private", "process-1 process-2 process-3"),
        ("broken_files.AsksNothing", "process-2"),
        ("broken_files.NeedsNoToken", "process-4"),
        ("broken_files.Hurries", "process-3"),
    ],
)
def test_what_is_wrong_between_processes_is_found(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, backend: str, broken: str
) -> None:
    """Each broken backend fails the promises that it breaks, and a good one none."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    outcomes = judged(pytester, PROCESSES.replace("{backend}", backend), broken or EVERY_PROCESS)

    assert (dict.fromkeys(broken.split(), "broken") or dict.fromkeys(EVERY_PROCESS.split(), "kept")) == outcomes


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ("        pass", ""),
        (FORGETS_IDS, "lost-1 lost-2 lost-4 retry-1 retry-2"),
        (FORGETS_LEASES, "lost-3"),
        (LEAVES_ROWS_OUT, "damage-1"),
        (LEAVES_THREADS_OUT, "damage-2 damage-4"),
        (STOPS_AT_DAMAGE, "damage-3 damage-4"),
        (SWALLOWS_DAMAGE, "retry-3"),
        (READS_A_THOUSAND, "size-1"),
        (CUTS_MEGABYTES, "size-2"),
    ],
    ids=lambda value: value if value and " " not in value else None,
)
def test_what_is_wrong_after_a_fault_is_found(pytester: pytest.Pytester, body: str, broken: str) -> None:
    """Each broken backend fails the promises that it breaks, and a good one none."""
    outcomes = judged(pytester, ROWS.replace("        {broken}", body.strip("\n")), broken or EVERY_FAULT)

    assert (dict.fromkeys(broken.split(), "broken") or dict.fromkeys(EVERY_FAULT.split(), "kept")) == outcomes
