"""Stores for as long as a command needs them, with their errors told as the command's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TypeVar

from strata_core.errors import StrataError
from strata_host.cli._errors import opening, querying

__all__ = ["entered"]

T = TypeVar("T")


@asynccontextmanager
async def entered(context: AbstractAsyncContextManager[T], storage: str, blobs: str) -> AsyncIterator[T]:
    """Enter what opens a store, and leave it again.

    Args:
        context: Opens the store, and closes it.
        storage: The option that named the store, for errors.
        blobs: The option that named its blobs, for errors.

    Raises:
        click.UsageError: The options name no store; exit code 2.
        CommandError: The store cannot be opened or closed; exit code 1.
    """
    with opening(storage, blobs):
        found = await context.__aenter__()
    try:
        yield found
    except BaseException:
        with suppress(StrataError):  # what went wrong first tells more
            await context.__aexit__(None, None, None)
        raise
    with querying():
        await context.__aexit__(None, None, None)
