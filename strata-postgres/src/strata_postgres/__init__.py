"""The PostgreSQL store of Strata: checkpoints that many processes and machines share.

Most users only install it: ``open_store("postgresql://user@host/database")`` of `strata_core` finds it.
"""

from typing import TYPE_CHECKING, Any

from strata_postgres._options import PostgresOptions

if TYPE_CHECKING:
    from strata_postgres._backend import PostgresBackend

__all__ = ["PostgresBackend", "PostgresOptions"]


def __getattr__(name: str) -> Any:
    """Import the backend, and with it the driver, when it is asked for."""
    if name == "PostgresBackend":
        from strata_postgres._backend import PostgresBackend

        return PostgresBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
