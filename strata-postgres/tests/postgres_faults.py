"""What the tests of faults have in common."""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from strata_core.errors import StoreUnavailableError
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.store import RowStore
from strata_postgres import PostgresBackend, PostgresOptions

START: Final = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
LATER: Final = START + timedelta(days=1)
LONG: Final = timedelta(minutes=5)
RUNNING, COMPLETED = CheckpointStatus.RUNNING, CheckpointStatus.COMPLETED


def checkpoint(thread_id: str, number: int, status: CheckpointStatus = RUNNING) -> Checkpoint:
    """A checkpoint whose text is offloaded by `store_at`."""
    return Checkpoint(thread_id, status, {"step": number, "text": "x" * 400}, START, metadata={"thread": thread_id})


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


async def outcome_of(call: Awaitable[Any]) -> Any:
    """What a call comes to, or the error that the server could not be used."""
    try:
        return await call
    except StoreUnavailableError as error:
        return error
