"""The records in which a plugin describes what it offers; `strata_core.hookspecs` has the hooks that return them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any

import attrs

from strata_core.options import StoreOptions
from strata_core.ports import BlobStore, CheckpointQuery, CheckpointRetention, CheckpointStore
from strata_core.rows import RowBackend

__all__ = ["BlobProvider", "QueryProvider", "RetentionProvider", "StoreProvider", "WrapperLayer", "WrapperProvider"]


def _schemes(value: Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class WrapperLayer(StrEnum):
    """What a wrapper wraps."""

    ROW = "row"
    """The rows: it takes and returns a `RowBackend`."""
    PORTS = "ports"
    """The ports: it takes and returns one object with store, query and retention together."""


@attrs.frozen(eq=False)
class StoreProvider:
    """Opens stores.

    Attributes:
        name: The store's name, as people know it: ``postgres``.
        schemes: Every URL scheme it serves, lower case: ``("postgres", "postgresql")``.
        port_version: The `strata_core.hookspecs.PORT_VERSION` it was written for.
        open: ``open(url, options)`` returns a `RowBackend`, not yet opened (core puts its own store around it), or a
            whole `CheckpointStore`, which may be an async context manager.  It does no I/O.
        options_class: The class of the `options` that `open_store` takes for these stores; None for none.
    """

    name: str
    schemes: tuple[str, ...] = attrs.field(converter=_schemes)
    port_version: int
    open: Callable[[str, StoreOptions], RowBackend | CheckpointStore | AbstractAsyncContextManager[CheckpointStore]]
    options_class: type[Any] | None = None


@attrs.frozen(eq=False)
class QueryProvider:
    """Finds threads in whole stores that do not do so themselves.

    Attributes:
        name: The `StoreProvider.name` of the store it belongs to.
        port_version: The `strata_core.hookspecs.PORT_VERSION` it was written for.
        bind: ``bind(store)`` returns the query of that open store.
    """

    name: str
    port_version: int
    bind: Callable[[Any], CheckpointQuery]


@attrs.frozen(eq=False)
class RetentionProvider:
    """Purges whole stores that do not do so themselves.

    Attributes:
        name: The `StoreProvider.name` of the store it belongs to.
        port_version: The `strata_core.hookspecs.PORT_VERSION` it was written for.
        bind: ``bind(store)`` returns the retention of that open store.
    """

    name: str
    port_version: int
    bind: Callable[[Any], CheckpointRetention]


@attrs.frozen(eq=False)
class BlobProvider:
    """Opens blob stores.

    Attributes:
        name: The blob store's name, as people know it.
        schemes: Every URL scheme it serves, lower case.
        port_version: The `strata_core.hookspecs.PORT_VERSION` it was written for.
        open: ``open(url)`` returns a `BlobStore`, or an async context manager that gives one.  It does no I/O.
    """

    name: str
    schemes: tuple[str, ...] = attrs.field(converter=_schemes)
    port_version: int
    open: Callable[[str], BlobStore | AbstractAsyncContextManager[BlobStore]]


@attrs.frozen(eq=False)
class WrapperProvider:
    """Puts a layer around a store.

    Attributes:
        name: The name it is asked for by; also its entry point's.
        layer: What it wraps.
        wrap: Takes what its layer says and returns the same; forwards `capabilities`.  It does no I/O.  A wrapper of
            ports may be an async context manager: it is entered before use and left before what it wraps is closed.
            A wrapper of rows is opened and closed as the `RowBackend` it is.
        port_version: The `strata_core.hookspecs.PORT_VERSION` it was written for.
    """

    name: str
    layer: WrapperLayer = attrs.field(converter=WrapperLayer)
    wrap: Callable[[Any], Any]
    port_version: int
