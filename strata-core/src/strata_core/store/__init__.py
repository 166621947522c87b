"""The one class that serves every port on top of any row backend."""

from strata_core.store._store import RowStore

__all__ = ["RowStore"]
