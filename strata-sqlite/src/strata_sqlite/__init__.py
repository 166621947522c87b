"""The SQLite store of Strata: checkpoints in one file.

Most users only install it: ``open_store("sqlite:///orders.db")`` of `strata_core` finds it.
"""

from typing import TYPE_CHECKING, Any

from strata_sqlite._options import SqliteOptions, Synchronous

if TYPE_CHECKING:
    from strata_sqlite._backend import SqliteBackend

__all__ = ["SqliteBackend", "SqliteOptions", "Synchronous"]


def __getattr__(name: str) -> Any:
    """Import the backend, and with it the driver, when it is asked for."""
    if name == "SqliteBackend":
        from strata_sqlite._backend import SqliteBackend

        return SqliteBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
