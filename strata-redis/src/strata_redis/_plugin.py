"""The plugin behind the schemes ``redis`` and ``rediss``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_core.errors import InvalidInputError
from strata_core.hookspecs import StoreProvider, hookimpl
from strata_redis._options import RedisOptions

if TYPE_CHECKING:
    from strata_core.options import StoreOptions
    from strata_redis._backend import RedisBackend

__all__ = ["strata_checkpoint_store"]


def _open(url: str, options: StoreOptions) -> RedisBackend:
    chosen = RedisOptions() if options.backend is None else options.backend
    if not isinstance(chosen, RedisOptions):
        raise InvalidInputError("options", f"must be RedisOptions for a redis: store, not {type(chosen).__name__}")
    from strata_redis._backend import RedisBackend  # the driver is imported when a store is wanted

    return RedisBackend(url, options=chosen)


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Offer ``redis:`` and ``rediss:``."""
    return StoreProvider(
        name="redis", schemes=("redis", "rediss"), port_version=1, open=_open, options_class=RedisOptions
    )
