"""What an open store serves: all ports at once."""

from __future__ import annotations

from typing import Protocol

from strata_core.ports._query import CheckpointQuery
from strata_core.ports._retention import CheckpointRetention
from strata_core.ports._store import CheckpointStore

__all__ = ["StorePorts"]


class StorePorts(CheckpointStore, CheckpointQuery, CheckpointRetention, Protocol):
    """Every port of one open store, as `open_store` gives it.

    A call to a port that the store's `capabilities` do not name raises `UnsupportedError`.
    """

    async def setup(self) -> None:
        """Create or upgrade what the storage needs.  Idempotent; many processes may run it at once.

        Raises:
            ReadOnlyError: The store was opened read-only.
        """
        ...
