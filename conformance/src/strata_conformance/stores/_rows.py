"""A row backend that hands every call on to another one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from strata_core.options import Setup
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend

__all__ = ["BACKEND_OPS", "ForwardingBackend"]

T = TypeVar("T")

BACKEND_OPS: Final = frozenset({"open", "close", "setup", "commit", "read_head", "read", "read_blobs", "list_heads"})


class ForwardingBackend(RowBackend):
    """Is the backend that it wraps, each call through `_around`.

    Capabilities and batching are the backend's at the moment of the question, as a server may only tell when it is
    open.

    Args:
        backend: The backend; it is opened and closed with this one.
    """

    def __init__(self, backend: RowBackend) -> None:
        self._backend = backend

    def __repr__(self) -> str:
        return f"<{type(self).__name__} around {self._backend!r}>"

    def __getattribute__(self, name: str) -> Any:
        # RowBackend declares both as values, so a property here would break its interface.
        if name in {"capabilities", "batching"}:
            return getattr(self._backend, name)
        return super().__getattribute__(name)

    async def _around(self, op: str, call: Callable[[], Awaitable[T]], **arguments: Any) -> T:
        """Make the call; here a subclass looks at it or interferes."""
        raise AssertionError(op, arguments, call)

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await self._around(
            "open",
            lambda: self._backend.open(read_only=read_only, setup=setup),
            read_only=read_only,
            setup=setup,
        )

    async def close(self) -> None:
        await self._around("close", self._backend.close)

    async def setup(self) -> None:
        await self._around("setup", self._backend.setup)

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        return await self._around("commit", lambda: self._backend.commit(batch), batch=batch)

    async def read_head(self, thread_id: str) -> Head | None:
        return await self._around("read_head", lambda: self._backend.read_head(thread_id), thread_id=thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await self._around(
            "read",
            lambda: self._backend.read(thread_id, first, last),
            thread_id=thread_id,
            first=first,
            last=last,
        )

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await self._around(
            "read_blobs",
            lambda: self._backend.read_blobs(thread_id, digests),
            thread_id=thread_id,
            digests=digests,
        )

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        return await self._around("list_heads", lambda: self._backend.list_heads(query), query=query)
