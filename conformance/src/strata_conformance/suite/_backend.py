"""What the row tests share: the fixture, commits to make, and the plain model of a backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeAlias

import attrs
import pytest

from strata_conformance._runner import run
from strata_conformance.suite._base import SuiteTests
from strata_core.capabilities import Capability
from strata_core.errors import StrataError
from strata_core.options import Setup
from strata_core.rows import (
    Commit,
    Committed,
    Head,
    HeadQuery,
    NewRow,
    Refused,
    Row,
    RowBackend,
    decide,
    matches,
)

__all__ = ["BackendTests", "Model", "OpenBackend", "OpenExpiringBackend", "opened", "row"]

OpenBackend: TypeAlias = Callable[[], RowBackend]
OpenExpiringBackend: TypeAlias = Callable[[timedelta], RowBackend]
"""As `OpenBackend`, its argument the ttl of finished threads."""


def row(n: int = 0, *, whole: bool = True, **fields: Any) -> NewRow:
    """Return a row whose bytes tell it from others."""
    values: dict[str, Any] = {
        "version": "1.7.0" if whole else "1.8.0",
        "envelope": b'{"row":%d}' % n,
        "body": b'{"n":%d}' % n,
        "status": "running",
        "state": "running",
        "updated": 1_000_000 + n,
    } | fields
    return NewRow(whole=whole, **values)


@asynccontextmanager
async def opened(
    backend: RowBackend, *, read_only: bool = False, setup: Setup = Setup.AUTO
) -> AsyncIterator[RowBackend]:
    """Open a backend, and close it whatever happens."""
    try:
        await backend.open(read_only=read_only, setup=setup)
        yield backend
    finally:
        await backend.close()


class BackendTests(SuiteTests):
    """The base of the classes that test a row backend."""

    @pytest.fixture
    def open_backend(self) -> OpenBackend:
        """A factory of backends; the author's one fixture.

        Each call gives another backend, not yet opened, on the same storage, which is empty when the test begins.
        """
        pytest.fail(f"{type(self).__name__} must define the fixture 'open_backend'", pytrace=False)

    @pytest.fixture
    def open_blank_backend(self, open_backend: OpenBackend) -> OpenBackend | None:
        """A factory like `open_backend`, of a place where no store was ever set up.

        By default `open_backend` itself, whose storage is so when the test begins.  Where that one was prepared, for
        speed, this gives another place; None leaves the tests of what opening creates out, and the report says so.
        """
        return open_backend

    @pytest.fixture
    def open_expiring_backend(self) -> OpenExpiringBackend | None:
        """A factory like `open_backend`, of backends whose finished threads expire: its argument is the ttl.

        For a backend that declares `Capability.EXPIRY`: on the same storage as `open_backend`, with the backend's own
        option set.  None leaves the tests of expiry out, and the report says so.
        """
        return None

    def _declared(self, request: pytest.FixtureRequest, setup: Setup) -> frozenset[Capability]:
        blank = "open_backend" if setup is Setup.AUTO else "open_blank_backend"
        open_backend: OpenBackend = request.getfixturevalue(blank)

        async def ask() -> frozenset[Capability]:
            backend = open_backend()
            try:
                async with opened(backend, setup=setup):
                    return backend.capabilities
            except StrataError:
                if setup is Setup.AUTO:
                    raise
                return backend.capabilities  # that it cannot be opened so is for the test to say

        return run(ask())


class Model:
    """What a backend should hold: core's `decide` on dictionaries, and nothing else.

    Attributes:
        heads: The heads by thread.
        rows: The rows by thread.
        blobs: The blobs by thread.
    """

    def __init__(self) -> None:
        self.heads: dict[str, Head] = {}
        self.rows: dict[str, list[Row]] = {}
        self.blobs: dict[str, dict[str, bytes]] = {}

    def commit(self, commit: Commit, now: int, token: int) -> Committed | Refused:
        """Judge a commit at `now`, handing out `token` if it takes a lease, and change what it changes."""
        thread_id = commit.thread_id
        outcome = decide(commit, self.heads.get(thread_id), now, lambda: token)
        if isinstance(outcome, Refused) or outcome.repeated:
            return outcome
        if commit.erase or outcome.head is None:
            self.rows.pop(thread_id, None)
            self.blobs.pop(thread_id, None)
            self.heads.pop(thread_id, None)
        if outcome.head is None:
            return outcome
        self.heads[thread_id] = outcome.head
        if commit.row is not None:
            new = commit.row
            self.rows.setdefault(thread_id, []).append(
                Row(outcome.sequence, outcome.head.whole_at, commit.write_id, new.version, new.envelope, new.body)
            )
        self.blobs.setdefault(thread_id, {}).update(commit.blobs)
        return outcome

    def read(self, thread_id: str, first: int | None, last: int | None) -> list[Row]:
        """Return what a backend's `read` should return."""
        rows = self.rows.get(thread_id, [])
        start = len(rows) - 1 if first is None else first
        if not 0 <= start < len(rows):
            return []
        return rows[rows[start].whole_at : len(rows) if last is None else last + 1]

    def list_heads(self, query: HeadQuery, now: int) -> list[Head]:
        """Return what a backend's `list_heads` should return, `now` aside."""
        found = [head for head in self.heads.values() if matches(head, query, now)]
        found.sort(key=lambda head: (head.updated, head.thread_id.encode()), reverse=not query.oldest_first)
        return [
            attrs.evolve(head, envelope=rows[-1].envelope if (rows := self.rows.get(head.thread_id)) else b"")
            for head in found[: query.limit]
        ]
