"""Calling a graph without an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeAlias, TypeVar

from strata_core.errors import InvalidInputError, UsageError
from strata_core.ports import CheckpointStore

__all__ = ["SyncStore", "call_sync"]

T = TypeVar("T")

SyncStore: TypeAlias = CheckpointStore | AbstractAsyncContextManager[CheckpointStore]
"""A store for the calls without an event loop: one that is not open yet, such as what `open_store` returns."""


def call_sync(method: str, store: SyncStore | None, call: Callable[[Any], Awaitable[T]]) -> T:
    """Run `call` with the store in an event loop of its own.

    A store belongs to the loop that opened it, so one that can be entered is opened for this call and closed after it.

    Raises:
        UsageError: An event loop runs in this thread, or the store is open already.
        InvalidInputError: The store is the path or URL of one.
    """
    if isinstance(store, str | os.PathLike):
        raise InvalidInputError("store", f"must be a store, not {type(store).__name__}; pass open_store(...) itself")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise UsageError(f"{method} blocks, and this thread runs an event loop; await {method.removesuffix('_sync')}")

    async def main() -> T:
        if isinstance(store, AbstractAsyncContextManager):
            async with AsyncExitStack() as stack:
                try:
                    opened = await stack.enter_async_context(store)
                except UsageError as error:
                    raise UsageError(f"{error}; pass open_store(...) itself to {method}, not entered before") from error
                return await call(opened)
        return await call(store)

    return asyncio.run(main())
