"""The driver's errors as the store's own."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg_pool import PoolTimeout

from strata_core.errors import (
    CorruptCheckpointError,
    InvalidInputError,
    ReadOnlyError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnavailableError,
    StrataError,
)
from strata_postgres._address import Address
from strata_postgres._schema import VERSION

__all__ = ["REPEATABLE", "never_set_up", "translate"]

REPEATABLE: Final = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: the whole call was undone, and may well do the next time."""
_MISSING: Final = frozenset({"3F000", "42P01", "42883"})  # schema, table, function
_BUSY: Final = frozenset({"55P03"})  # lock_timeout
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_CUT_OFF: Final = frozenset({"57P01", "57P02"})
"""The server ends the connection; it may do so behind a commit that waits for a standby."""


def never_set_up(address: Address, found: str = "none") -> SchemaVersionError:
    """Return the error for a schema without our tables, or with those of an older version."""
    state = "was never set up" if found == "none" else f"has schema version {found}"
    return SchemaVersionError(
        f'{address}: the store {state}; call store.setup() once, or open it for writing with setup="auto"',
        found=found,
        supported=str(VERSION),
    )


def translate(
    error: Exception, address: Address, *, writing: bool = False, sent: bool = True, thread_id: str | None = None
) -> StrataError:
    """Return the error that a caller sees.

    Args:
        error: The driver's.
        address: Where the store is.
        writing: The call was a write.
        sent: It may have reached the server.
        thread_id: The thread at hand, when it is one.
    """
    code = getattr(error, "sqlstate", None) or ""
    detail = address.scrubbed(error) + (f" ({code})" if code else "")
    if isinstance(error, PoolTimeout):
        return StoreUnavailableError(f"{address}: no connection was free or could be made in time: {detail}")
    if code in _MISSING:
        return never_set_up(address)
    if code in _BUSY:
        return StoreBusyError(f"{address}: somebody else kept what is needed locked: {detail}")
    if code in REPEATABLE:
        return StoreBusyError(f"{address}: others write to the same threads all the time: {detail}")
    if code == "25006":
        return ReadOnlyError(f"{address}: the database takes no writes; connect to the primary: {detail}")
    if code == "42501":
        needed = (
            "USAGE on the schema and its sequences, SELECT, INSERT, UPDATE and DELETE on its tables"
            if writing
            else "USAGE on the schema and SELECT on its tables and views"
        )
        problem = f"{address}: the role lacks a privilege; grant it {needed}: {detail}"
        return ReadOnlyError(problem) if writing else StoreUnavailableError(problem)
    if code in _DAMAGED:
        return CorruptCheckpointError(
            "*" if thread_id is None else thread_id, None, f"cannot be read: {address} is damaged: {detail}"
        )
    if code.startswith("54"):
        return InvalidInputError("checkpoint", f"is larger than PostgreSQL stores: {detail}")
    if code in {"22021", "22P05"}:
        return InvalidInputError("checkpoint", f"holds a text that PostgreSQL cannot store: {detail}")
    # Behind any other answer of the server, the transaction is undone.  Without an answer, nobody knows.
    unknown = writing and sent and (code in _CUT_OFF or (not code and isinstance(error, psycopg.OperationalError)))
    return StoreUnavailableError(f"{address}: {detail}", maybe_written=unknown)
