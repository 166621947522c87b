"""The SQLite store of Strata: checkpoints in one file.

Most users only install it: ``open_store("sqlite:///orders.db")`` of `strata_core` finds it.
"""

from strata_sqlite._backend import SqliteBackend
from strata_sqlite._options import SqliteOptions, Synchronous

__all__ = ["SqliteBackend", "SqliteOptions", "Synchronous"]
