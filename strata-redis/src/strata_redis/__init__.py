"""The Redis and Valkey store of Strata.

Most users only install it: ``open_store("redis://localhost:6379/0")`` of `strata_core` finds it.
"""

from typing import TYPE_CHECKING, Any

from strata_redis._options import RedisOptions

if TYPE_CHECKING:
    from strata_redis._backend import RedisBackend

__all__ = ["RedisBackend", "RedisOptions"]


def __getattr__(name: str) -> Any:
    """Import the backend, and with it the driver, when it is asked for."""
    if name == "RedisBackend":
        from strata_redis._backend import RedisBackend

        return RedisBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
