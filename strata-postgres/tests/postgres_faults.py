"""What the tests of faults have in common."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from strata_conformance.servers.lives import COMPLETED, LATER, LONG, checkpoint, outcome_of
from strata_core.options import Deltas, Offload
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions

__all__ = ["COMPLETED", "LATER", "LONG", "checkpoint", "outcome_of", "store_at"]


@asynccontextmanager
async def store_at(url: str, *, encoded: bool = True, **more: Any) -> AsyncGenerator[RowStore]:
    """A store with deltas and offload, unless told otherwise, and little patience.

    Args:
        url: Of the database.
        encoded: Whether with deltas and offload.
        **more: Options of the backend.
    """
    patience = {"command_timeout": timedelta(seconds=0.25), "pool_timeout": timedelta(seconds=5)}
    backend = PostgresBackend(url, options=PostgresOptions(**(patience | more)))
    deltas, offload = (Deltas(), Offload(threshold=300)) if encoded else (None, None)
    async with RowStore(backend, deltas=deltas, offload=offload) as store:
        yield store
