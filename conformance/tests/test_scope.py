"""The command's tests see, write and erase their own threads, whatever else is on the storage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata_conformance import OpenBackend, RowBackendTests
from strata_conformance._scope import MARK, Scope, ScopedBackend
from strata_conformance.suite._backend import opened, row
from strata_core.memory import MemoryBackend
from strata_core.rows import Commit, Head, HeadQuery, Row, RowBackend, Take
from strata_core.testing import FakeClock
from strata_sqlite import SqliteBackend

FOREIGN = ["order-1", "strata", "strata-test-", "zebra", "\U0001f600", "t"]


async def fill(backend: RowBackend) -> None:
    """Put threads of somebody else on a storage, finished ones and leased ones too."""
    for n, thread in enumerate(FOREIGN):
        state = "completed" if n % 2 else "running"
        await backend.commit([Commit(thread, os.urandom(8), row=row(n, state=state, status=state, updated=n * 10**15))])
    await backend.commit([Commit("order-1", os.urandom(8), lease=Take("worker", 10**9))])
    await backend.commit([Commit("lease only", os.urandom(8), lease=Take("worker", 1))])


async def everything(backend: RowBackend) -> list[tuple[str, int, int, list[Row]]]:
    """Return all that a storage holds."""
    heads: list[Head] = []
    for rowless in (False, True):
        heads += await backend.list_heads(HeadQuery(rowless=rowless, limit=1000))
    return [(h.thread_id, h.sequence, h.token, list(await backend.read(h.thread_id, 0, None))) for h in heads]


class TestAmongOthers(RowBackendTests):
    """A test that is confined to its threads comes out the same beside those of others, which stay as they are."""

    in_memory = True

    @pytest.fixture
    def open_backend(self, clock: FakeClock) -> Iterator[OpenBackend]:
        backend, scope = MemoryBackend(clock), Scope()
        asyncio.run(fill(backend))
        before = asyncio.run(everything(backend))
        yield lambda: ScopedBackend(backend, scope)
        asyncio.run(scope.clear(backend))
        assert before == asyncio.run(everything(backend))


def test_what_a_scope_leaves_is_recognised_and_no_two_are_alike() -> None:
    """Each scope has a random prefix that begins with the same word."""
    prefixes = {Scope().prefix for _ in range(50)}

    assert 50 == len(prefixes)
    assert all(prefix.startswith(MARK) for prefix in prefixes)


@pytest.mark.parametrize("thread_id", ["x" * 512, "x" * 511, "\u00e9" * 256, "x", ""])
def test_an_outer_id_is_no_longer_than_a_thread_id_may_be(thread_id: str) -> None:
    """A long ID gives up its beginning, and comes back whole."""
    scope = Scope()
    outer = scope.outer(thread_id)

    assert len(outer.encode()) <= 512
    assert outer.startswith(scope.prefix)
    assert thread_id == scope.inner(outer)


def test_long_ids_that_would_become_one_are_an_error() -> None:
    """Two threads of a test are never mixed up behind the prefix."""
    scope = Scope()
    scope.outer("a" * 100 + "x" * 412)
    with pytest.raises(AssertionError, match="cannot be told apart"):
        scope.outer("b" + "a" * 99 + "x" * 412)


def test_a_thread_of_another_scope_is_nobody() -> None:
    """Scopes do not see each other."""
    assert Scope().inner(Scope().outer("t")) is None


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("expired", [False, True])
def test_clearing_takes_threads_that_are_leased_or_half_purged(tmp_path: Path, closing: bool, expired: bool) -> None:
    """Whatever state a test leaves a thread in, it is erased, and a thread that it only looked at stays unmade."""
    clock, scope = FakeClock(), Scope()

    async def main() -> list[tuple[str, int, int, list[Row]]]:
        async with opened(ScopedBackend(SqliteBackend(tmp_path / "x.db", clock=clock), scope)) as backend:
            await backend.commit([Commit("t", os.urandom(8), row=row())])
            lease = Take("o", 10**6, closing)
            await backend.commit([Commit("t", os.urandom(8), lease=lease, erase=closing)])
            await backend.read_head("looked at")
        if expired:
            clock.advance(10)
        await scope.clear(SqliteBackend(tmp_path / "x.db", clock=clock))
        async with opened(SqliteBackend(tmp_path / "x.db", clock=clock)) as bare:
            return await everything(bare)

    assert [] == asyncio.run(main())
