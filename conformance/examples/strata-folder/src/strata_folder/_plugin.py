"""The plugin behind the scheme ``folder``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_core.hookspecs import StoreProvider, hookimpl
from strata_core.urls import database_path

if TYPE_CHECKING:
    from strata_core.options import StoreOptions
    from strata_folder._backend import FolderBackend

__all__ = ["strata_checkpoint_store"]


def _open(url: str, options: StoreOptions) -> FolderBackend:
    from strata_folder._backend import FolderBackend  # imported when a store is wanted, not when plugins are listed

    return FolderBackend(database_path(url), clock=options.clock)


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Offer ``folder:``."""
    return StoreProvider(name="folder", schemes=("folder",), port_version=1, open=_open)
