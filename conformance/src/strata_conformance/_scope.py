"""Confines a test to threads of its own, on a storage that others may use."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from strata_conformance.stores._rows import ForwardingBackend
from strata_core.options import Setup
from strata_core.rows import Commit, Committed, Drop, Head, HeadQuery, Refused, Row, RowBackend, Take

__all__ = ["MARK", "Scope", "ScopedBackend"]

MARK: Final = "strata-test-"
"""How every thread ID of the command begins, for whoever finds what a killed run left."""
_LONGEST: Final = 512
_PAGE: Final = 1000
_MINUTE: Final = 60_000_000


class Scope:
    """A random prefix, and the threads that were named under it.

    A thread ID is put behind the prefix.  One that would become longer than a thread ID may be gives up its first bytes
    for it, so that a storage is still given IDs of the full length.

    Args:
        prefix: The prefix of another scope, to share it; a new one by default.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix: Final = prefix or MARK + secrets.token_hex(6)
        self._given: dict[str, str] = {}

    def outer(self, thread_id: str) -> str:
        """Return the ID by which the storage knows a thread of the test."""
        text = self.prefix + thread_id
        encoded = text.encode()
        if len(encoded) > _LONGEST:
            size = len(self.prefix)
            text = self.prefix + thread_id.encode()[size:].decode()
        if self._given.setdefault(text, thread_id) != thread_id:
            raise AssertionError(f"two long thread IDs cannot be told apart behind {self.prefix}")
        return text

    def inner(self, thread_id: str) -> str | None:
        """Return the ID by which the test knows a thread of the storage; None for a thread of somebody else."""
        if not thread_id.startswith(self.prefix):
            return None
        return self._given.get(thread_id, thread_id[len(self.prefix) :])

    async def clear(self, backend: RowBackend) -> None:
        """Erase every thread that was named under this prefix, and no other."""
        if not self._given:
            return
        try:
            await backend.open(read_only=False, setup=Setup.AUTO)
            for thread_id in self._given:
                await _erase(backend, thread_id)
        finally:
            await backend.close()


async def _erase(backend: RowBackend, thread_id: str) -> None:
    head = await backend.read_head(thread_id)
    if head is None:
        return
    token = head.token if head.is_leased(head.now) else 0
    commit = Commit(thread_id, os.urandom(8), token=token, erase=True)
    if head.closing and not token:  # a purge that was not finished: it can only be taken over
        commit.lease = Take("strata-conformance", _MINUTE, closing=True)
    (outcome,) = await backend.commit([commit])
    if isinstance(outcome, Committed) and commit.lease is not None:
        await backend.commit([Commit(thread_id, os.urandom(8), token=outcome.token, lease=Drop())])


class ScopedBackend(ForwardingBackend):
    """Shows of a backend the threads of one scope, each under the name that the test gave it.

    Listings are paged until they are full, so what else the storage holds changes nothing but the time they take; where
    it holds nothing else, they are what the backend gives.
    """

    def __init__(self, backend: RowBackend, scope: Scope) -> None:
        super().__init__(backend)
        self._scope = scope

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await self._backend.open(read_only=read_only, setup=setup)

    async def close(self) -> None:
        await self._backend.close()

    async def setup(self) -> None:
        await self._backend.setup()

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        outer = [attrs.evolve(commit, thread_id=self._scope.outer(commit.thread_id)) for commit in batch]
        outcomes = await self._backend.commit(outer)
        return [
            attrs.evolve(outcome, head=self._named(outcome.head, commit.thread_id))
            for outcome, commit in zip(outcomes, batch, strict=True)
        ]

    async def read_head(self, thread_id: str) -> Head | None:
        return self._named(await self._backend.read_head(self._scope.outer(thread_id)), thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await self._backend.read(self._scope.outer(thread_id), first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await self._backend.read_blobs(self._scope.outer(thread_id), digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        found: list[Head] = []
        past = None if query.past is None else (query.past[0], self._scope.outer(query.past[1]))
        limit = query.limit
        while True:
            page = await self._backend.list_heads(attrs.evolve(query, past=past, limit=limit))
            for head in page:
                inner = self._scope.inner(head.thread_id)
                if inner is not None:
                    found.append(attrs.evolve(head, thread_id=inner))
            if len(found) == len(page) or len(page) < limit or len(found) >= query.limit:
                return found[: query.limit] if limit != query.limit else found
            past, limit = (page[-1].updated, page[-1].thread_id), _PAGE

    def _named(self, head: Head | None, thread_id: str) -> Head | None:
        # The name must be the one that the backend gave, so that a backend which mixes threads up is found out.
        if head is None or head.thread_id != self._scope.outer(thread_id):
            return head
        return attrs.evolve(head, thread_id=thread_id)
