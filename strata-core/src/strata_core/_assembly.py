"""Puts a store together: the provider's backend or store, core's own store around rows, blobs, wrappers."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any

import attrs

from strata_core._direct import DirectStore
from strata_core._opening_arguments import BLOB_METHODS, PORT_METHODS, QUERY_METHODS, RETENTION_METHODS, STORE_METHODS
from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError, StrataError, UnsupportedError
from strata_core.hookspecs import WrapperLayer, WrapperProvider
from strata_core.options import Deltas, Offload, StoreOptions
from strata_core.plugins import Plugin, PluginSet, StoreParts
from strata_core.ports import BlobStore, StorePorts
from strata_core.rows import RowBackend
from strata_core.store import RowStore
from strata_core.urls import blob_url, scheme_of, scrub

__all__ = ["Assembly", "enter_blobs"]

Wrappers = list[tuple[Plugin, WrapperProvider]]


class Assembly:
    """One store to be opened; the arguments are those of `open_store`, checked."""

    def __init__(
        self,
        url: str,
        deltas: Deltas | None,
        offload: Offload | None,
        options: StoreOptions,
        wrappers: tuple[str, ...],
        plugins: tuple[object, ...],
    ) -> None:
        self._url = url
        self._deltas = deltas
        self._offload = offload
        self._options = options
        self._wrappers = wrappers
        self._plugins = plugins

    async def build(self, stack: AsyncExitStack) -> StorePorts:
        """Open everything, in the order of need; `stack` closes it again.

        Raises:
            PluginError: No plugin serves the URL or a wrapper, or one is blocked or broken.
            UnsupportedError: The store lacks what an option asks for.
        """
        found = PluginSet(self._plugins)
        parts = found.store(scheme_of(self._url) or "")
        self._check_options(parts)
        wrappers = [found.wrapper(name) for name in self._wrappers]
        of_rows = [pair for pair in wrappers if pair[1].layer is WrapperLayer.ROW]
        of_ports = [pair for pair in wrappers if pair[1].layer is WrapperLayer.PORTS]
        offload = await self._opened_offload(found, stack)
        opened = _call(parts.plugin, "open", parts.store.open, self._url, self._options, url=self._url)
        if isinstance(opened, RowBackend):
            store = await self._row_store(opened, offload, of_rows, stack)
        else:
            store = await self._direct_store(opened, parts, of_rows, stack)
        for plugin, wrapper in of_ports:
            store = await _entered(_call(plugin, "wrap", wrapper.wrap, store, url=self._url), stack)
            _check(plugin, f"wraps a store in a {type(store).__name__}", store, PORT_METHODS)
        return store

    def _check_options(self, parts: StoreParts) -> None:
        options, wanted, name = self._options.backend, parts.store.options_class, parts.store.name
        if options is None or (wanted is not None and isinstance(options, wanted)):
            return
        given = _class_name(type(options))
        if wanted is None:
            raise InvalidInputError("options", f"must be None: {name!r} stores take no options")
        raise InvalidInputError("options", f"must be of type {_class_name(wanted)} for {name!r} stores, not {given}")

    async def _opened_offload(self, found: PluginSet, stack: AsyncExitStack) -> Offload | None:
        offload = self._offload
        if offload is None or not isinstance(offload.blobs, str | os.PathLike):
            return offload
        url = blob_url(offload.blobs, "offload.blobs")
        return attrs.evolve(offload, blobs=await enter_blobs(url, found, stack))

    async def _row_store(
        self,
        backend: RowBackend,
        offload: Offload | None,
        wrappers: Wrappers,
        stack: AsyncExitStack,
    ) -> StorePorts:
        for plugin, wrapper in wrappers:
            wrapped = _call(plugin, "wrap", wrapper.wrap, backend, url=self._url)
            if not isinstance(wrapped, RowBackend):
                raise plugin.error(f"wraps rows in a {type(wrapped).__name__}, which is no RowBackend")
            backend = wrapped
        store = RowStore(
            backend,
            deltas=self._deltas,
            offload=offload,
            read_only=self._options.read_only,
            setup=self._options.setup,
        )
        return await stack.enter_async_context(store)

    async def _direct_store(
        self, opened: Any, parts: StoreParts, wrappers: Wrappers, stack: AsyncExitStack
    ) -> StorePorts:
        name = parts.store.name
        for capability, asked in ((Capability.DELTAS, self._deltas), (Capability.OFFLOAD, self._offload)):
            if asked is not None:
                raise UnsupportedError(
                    capability, f"{name!r} stores have no rows that core could encode: open them without {capability}"
                )
        for _, wrapper in wrappers:
            raise InvalidInputError("wrappers", f"{wrapper.name!r} wraps rows, and {name!r} stores have none")
        store = await _entered(opened, stack)
        what = f"opens a {type(store).__name__}"
        _check(parts.plugin, what, store, (*STORE_METHODS, "capabilities"))
        if self._options.read_only and Capability.READ_ONLY not in store.capabilities:
            raise UnsupportedError(Capability.READ_ONLY, f"{name!r} stores cannot be opened read-only")
        query = retention = None
        if parts.query is not None:
            query = _call(parts.plugin, "bind", parts.query.bind, store, url=self._url)
            _check(parts.plugin, f"binds a {type(query).__name__}", query, QUERY_METHODS)
        elif Capability.QUERY in store.capabilities:
            _check(parts.plugin, f"declares the capability {Capability.QUERY.value!r} and {what}", store, QUERY_METHODS)
            query = store
        if parts.retention is not None:
            retention = _call(parts.plugin, "bind", parts.retention.bind, store, url=self._url)
            _check(parts.plugin, f"binds a {type(retention).__name__}", retention, RETENTION_METHODS)
        elif Capability.RETENTION in store.capabilities:
            _check(
                parts.plugin,
                f"declares the capability {Capability.RETENTION.value!r} and {what}",
                store,
                RETENTION_METHODS,
            )
            retention = store
        direct = DirectStore(name, store, query, retention, read_only=self._options.read_only)
        stack.push_async_callback(direct.close)
        return direct


async def enter_blobs(url: str, found: PluginSet, stack: AsyncExitStack) -> BlobStore:
    """Open the blob store of a URL; `stack` closes it again.

    Raises:
        PluginError: No plugin serves the URL, or the one that does is blocked or broken.
    """
    plugin, provider = found.blobs(scheme_of(url) or "")
    blobs: BlobStore = await _entered(_call(plugin, "open", provider.open, url, url=url), stack)
    _check(plugin, f"opens a {type(blobs).__name__}", blobs, BLOB_METHODS)
    return blobs


async def _entered(opened: Any, stack: AsyncExitStack) -> Any:
    """Enter what can be entered; anything else is used as it is."""
    if hasattr(type(opened), "__aenter__"):
        return await stack.enter_async_context(opened)
    return opened


def _call(plugin: Plugin, verb: str, function: Callable[..., Any], *arguments: object, url: str) -> Any:
    """Call a plugin's factory; what it raises by mistake is told with its name and without the URL's secrets."""
    try:
        made = function(*arguments)
    except StrataError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a plugin raises is told with its name
        said = str(error)
        shown = scrub(said, url)
        # The traceback of a cause would print its message as it is.
        raise plugin.error(f"fails to {verb}: {type(error).__name__}: {shown}") from (error if shown == said else None)
    if isinstance(made, Coroutine):
        made.close()
        raise plugin.error(f"has an async {verb}: return an async context manager, and do the waiting there")
    return made


def _check(plugin: Plugin, what: str, made: object, needed: Iterable[str]) -> None:
    missing = [name for name in needed if not hasattr(made, name)]
    if missing:
        raise plugin.error(f"{what}, which lacks {', '.join(missing)}")


def _class_name(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
