"""The plugin behind the scheme ``sqlite``, and so behind every bare path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_core.errors import InvalidInputError
from strata_core.hookspecs import StoreProvider, hookimpl
from strata_core.urls import database_path
from strata_sqlite._options import SqliteOptions

if TYPE_CHECKING:
    from strata_core.options import StoreOptions
    from strata_sqlite._backend import SqliteBackend

__all__ = ["strata_checkpoint_store"]


def _open(url: str, options: StoreOptions) -> SqliteBackend:
    chosen = SqliteOptions() if options.backend is None else options.backend
    if not isinstance(chosen, SqliteOptions):
        raise InvalidInputError("options", f"must be SqliteOptions for a sqlite: store, not {type(chosen).__name__}")
    path = database_path(url)
    from strata_sqlite._backend import SqliteBackend  # the driver is imported when a store is wanted

    return SqliteBackend(path, options=chosen, clock=options.clock)


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Offer ``sqlite:``."""
    return StoreProvider(name="sqlite", schemes=("sqlite",), port_version=1, open=_open, options_class=SqliteOptions)
