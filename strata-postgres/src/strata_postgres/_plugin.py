"""The plugin behind the schemes ``postgres`` and ``postgresql``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_core.errors import InvalidInputError
from strata_core.hookspecs import StoreProvider, hookimpl
from strata_postgres._options import PostgresOptions

if TYPE_CHECKING:
    from strata_core.options import StoreOptions
    from strata_postgres._backend import PostgresBackend

__all__ = ["strata_checkpoint_store"]


def _open(url: str, options: StoreOptions) -> PostgresBackend:
    chosen = PostgresOptions() if options.backend is None else options.backend
    if not isinstance(chosen, PostgresOptions):
        raise InvalidInputError(
            "options", f"must be PostgresOptions for a postgres: store, not {type(chosen).__name__}"
        )
    from strata_postgres._backend import PostgresBackend  # the driver is imported when a store is wanted

    return PostgresBackend(url, options=chosen)


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Offer ``postgres:`` and ``postgresql:``."""
    return StoreProvider(
        name="postgres",
        schemes=("postgres", "postgresql"),
        port_version=1,
        open=_open,
        options_class=PostgresOptions,
    )
