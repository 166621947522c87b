"""Opens a store, or a blob store, from its URL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, final

from strata_core._opening_arguments import (
    PORT_METHODS,
    flag_argument,
    names_argument,
    offload_argument,
    optional_argument,
    plugins_argument,
    setup_argument,
)
from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.errors import UsageError
from strata_core.options import Deltas, Offload, Setup, StoreOptions

if TYPE_CHECKING:
    from strata_core.ports import BlobStore, StorePorts

__all__ = ["OpenStore", "open_blobs", "open_store"]


def open_store(
    url: str | os.PathLike[str],
    *,
    deltas: Deltas | None = None,
    offload: Offload | None = None,
    read_only: bool = False,
    setup: Setup | str = Setup.AUTO,
    wrappers: Iterable[str] = (),
    options: object = None,
    clock: Clock = SYSTEM_CLOCK,
    plugins: Iterable[object] | None = None,
) -> OpenStore:
    """Return an async context manager that opens a store and closes it again.

        async with open_store("sqlite:///orders.db", deltas=Deltas()) as store:
            await store.save(checkpoint)

    Nothing is opened, imported or touched before ``async with``.  Whatever fails while opening, and a cancellation at
    any await, closes what had been opened.

    Args:
        url: Where the threads are, see `strata_core.urls`; a bare path means SQLite.
        deltas: Store running checkpoints as differences.
        offload: Store large values apart.  Blobs given as a URL or a folder are opened and closed with the store; a
            `BlobStore` object stays its owner's.
        read_only: Open without the right to write; every write raises `ReadOnlyError`.
        setup: Whether opening may create or upgrade the storage: ``auto`` or ``never``.
        wrappers: Names of wrappers to put around the store, in this order: the first is nearest to the storage.
            Wrappers of rows come before wrappers of ports by their nature.
        options: The store's own options, an instance of its options class.
        clock: Judges leases where the storage has no clock of its own.
        plugins: Modules or objects with hooks that need no entry point; they come before installed plugins.

    Raises:
        InvalidInputError: An argument breaks a rule.

    On entering, `PluginError` when no plugin serves the URL or a wrapper, or a plugin is blocked or broken;
    `UnsupportedError` when the store lacks what an argument asks for; and what the storage raises.
    """
    from strata_core.urls import store_url

    return OpenStore(
        store_url(url),
        deltas=optional_argument(deltas, Deltas, "deltas"),
        offload=offload_argument(offload),
        read_only=flag_argument(read_only, "read_only"),
        setup=setup_argument(setup),
        wrappers=names_argument(wrappers),
        options=options,
        clock=clock,
        plugins=plugins_argument(plugins),
    )


@final
class OpenStore:
    """What `open_store` returns: enter it with ``async with``, once."""

    def __init__(
        self,
        url: str,
        *,
        deltas: Deltas | None,
        offload: Offload | None,
        read_only: bool,
        setup: Setup,
        wrappers: tuple[str, ...],
        options: object,
        clock: Clock,
        plugins: tuple[object, ...],
    ) -> None:
        self._url = url
        self._deltas = deltas
        self._offload = offload
        self._options = StoreOptions(read_only=read_only, setup=setup, clock=clock, backend=options)
        self._wrappers = wrappers
        self._plugins = plugins
        self._entered = False
        self._stack = AsyncExitStack()

    def __repr__(self) -> str:
        from strata_core.urls import redact

        return f"<open_store({redact(self._url)!r})>"

    def __getattr__(self, name: str) -> Any:
        if name in PORT_METHODS:
            raise UsageError(
                f"{self!r} is not a store: write 'async with open_store(...) as store:' and use 'store', "
                f"which has {name!r}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    if not TYPE_CHECKING:  # a type checker says by itself that these are not there

        def __enter__(self):
            raise UsageError(self._not_by("with"))

        def __exit__(self, *_):
            """Never called; without it, ``with`` would not get as far as `__enter__`."""

        def __await__(self):
            raise UsageError(self._not_by("await"))

    def _not_by(self, wrong: str) -> str:
        return f"{self!r} is opened by 'async with open_store(...) as store:', not by {wrong!r}"

    async def __aenter__(self) -> StorePorts:
        if self._entered:
            raise UsageError(f"{self!r} was entered before: call open_store again for another store")
        self._entered = True
        async with AsyncExitStack() as stack:
            from strata_core._assembly import Assembly

            assembly = Assembly(self._url, self._deltas, self._offload, self._options, self._wrappers, self._plugins)
            store = await assembly.build(stack)
            self._stack = stack.pop_all()
        return store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)


def open_blobs(
    url: str | os.PathLike[str], *, plugins: Iterable[object] | None = None
) -> AbstractAsyncContextManager[BlobStore]:
    """Return an async context manager that opens a blob store and closes it again.

    For whoever wants the blobs themselves; `open_store` opens those of its `offload` by itself.

    Args:
        url: Where the blobs are, see `strata_core.urls`; a bare path is a folder.
        plugins: Modules or objects with hooks that need no entry point; they come before installed plugins.

    Raises:
        InvalidInputError: An argument breaks a rule.

    On entering, `PluginError` when no plugin serves the URL, and what the storage raises.
    """
    from strata_core.urls import blob_url

    return _opened_blobs(blob_url(url, "url"), plugins_argument(plugins))


@asynccontextmanager
async def _opened_blobs(url: str, plugins: tuple[object, ...]) -> AsyncIterator[BlobStore]:
    from strata_core._assembly import enter_blobs
    from strata_core.plugins import PluginSet

    async with AsyncExitStack() as stack:
        yield await enter_blobs(url, PluginSet(plugins), stack)
