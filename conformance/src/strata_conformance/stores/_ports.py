"""A store that hands every call on to another one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeVar

from strata_core.capabilities import Capability
from strata_core.ports import ANY, AnyRevision, StorePorts
from strata_core.records import (
    FINISHED,
    Checkpoint,
    Lease,
    LogEntry,
    LogPage,
    Revision,
    ThreadPage,
    ThreadQuery,
    ThreadState,
)

__all__ = ["STORE_OPS", "ForwardingStore"]

T = TypeVar("T")

STORE_OPS: Final = frozenset(
    {
        "save",
        "save_if_latest",
        "save_under_lease",
        "load",
        "acquire_lease",
        "renew_lease",
        "release_lease",
        "live_lease",
        "list_threads",
        "get_log",
        "purge",
        "setup",
    }
)

_DEFAULT_QUERY: Final = ThreadQuery()


class ForwardingStore:
    """Serves every port by calling `store`, each call through `_around`.

    It does not own the store: whoever opened that closes it.

    Args:
        store: An open store.
    """

    def __init__(self, store: StorePorts) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<{type(self).__name__} around {self._store!r}>"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the store declares."""
        return self._store.capabilities

    async def _around(self, op: str, call: Callable[[], Awaitable[T]], **arguments: Any) -> T:
        """Make the call; here a subclass looks at it or interferes."""
        raise AssertionError(op, arguments, call)

    async def save(self, checkpoint: Checkpoint, *, write_id: bytes | None = None) -> int:
        return await self._around(
            "save",
            lambda: self._store.save(checkpoint, write_id=write_id),
            checkpoint=checkpoint,
            write_id=write_id,
        )

    async def save_if_latest(
        self,
        checkpoint: Checkpoint,
        expected: int | Revision | None,
        *,
        unleased: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        return await self._around(
            "save_if_latest",
            lambda: self._store.save_if_latest(checkpoint, expected, unleased=unleased, write_id=write_id),
            checkpoint=checkpoint,
            expected=expected,
            unleased=unleased,
            write_id=write_id,
        )

    async def save_under_lease(
        self,
        checkpoint: Checkpoint,
        lease: Lease,
        *,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        release: bool = False,
        write_id: bytes | None = None,
    ) -> int:
        return await self._around(
            "save_under_lease",
            lambda: self._store.save_under_lease(
                checkpoint, lease, expected=expected, release=release, write_id=write_id
            ),
            checkpoint=checkpoint,
            lease=lease,
            expected=expected,
            release=release,
            write_id=write_id,
        )

    async def load(self, thread_id: str, *, at: int | None = None) -> LogEntry | None:
        return await self._around("load", lambda: self._store.load(thread_id, at=at), thread_id=thread_id, at=at)

    async def acquire_lease(
        self,
        thread_id: str,
        *,
        owner: str,
        ttl: timedelta,
        save: Checkpoint | None = None,
        expected: int | Revision | Literal[AnyRevision.ANY] | None = ANY,
        write_id: bytes | None = None,
    ) -> Lease | None:
        return await self._around(
            "acquire_lease",
            lambda: self._store.acquire_lease(
                thread_id, owner=owner, ttl=ttl, save=save, expected=expected, write_id=write_id
            ),
            thread_id=thread_id,
            owner=owner,
            ttl=ttl,
            save=save,
            expected=expected,
            write_id=write_id,
        )

    async def renew_lease(self, lease: Lease, *, ttl: timedelta) -> Lease:
        return await self._around("renew_lease", lambda: self._store.renew_lease(lease, ttl=ttl), lease=lease, ttl=ttl)

    async def release_lease(self, lease: Lease) -> None:
        await self._around("release_lease", lambda: self._store.release_lease(lease), lease=lease)

    async def live_lease(self, thread_id: str) -> Lease | None:
        return await self._around("live_lease", lambda: self._store.live_lease(thread_id), thread_id=thread_id)

    async def list_threads(self, query: ThreadQuery = _DEFAULT_QUERY, /) -> ThreadPage:
        return await self._around("list_threads", lambda: self._store.list_threads(query), query=query)

    async def get_log(self, thread_id: str, *, start: int = 0, limit: int = 100) -> LogPage:
        return await self._around(
            "get_log",
            lambda: self._store.get_log(thread_id, start=start, limit=limit),
            thread_id=thread_id,
            start=start,
            limit=limit,
        )

    async def purge(
        self, older_than: datetime, *, states: Collection[ThreadState] = FINISHED, limit: int = 1000
    ) -> int:
        return await self._around(
            "purge",
            lambda: self._store.purge(older_than, states=states, limit=limit),
            older_than=older_than,
            states=states,
            limit=limit,
        )

    async def setup(self) -> None:
        await self._around("setup", self._store.setup)
