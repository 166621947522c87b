"""The PostgreSQL row backend."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from strata_core.capabilities import Capability
from strata_core.errors import ReadOnlyError, StoreClosedError, UsageError
from strata_core.options import Setup
from strata_core.rows import Batching, Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend
from strata_postgres._address import Address
from strata_postgres._calls import Calls
from strata_postgres._commit import outcomes, text_array
from strata_postgres._errors import never_set_up
from strata_postgres._heads import head_from
from strata_postgres._list import CALL as LIST
from strata_postgres._list import page_statement
from strata_postgres._loads import Loads
from strata_postgres._options import PostgresOptions
from strata_postgres._pool import Pool
from strata_postgres._read import BLOBS, HEAD, LATEST, LATEST_OF_ALL, RANGE
from strata_postgres._schema import VERSION, quoted
from strata_postgres._setup import VERSION_OF, look, looked, set_up

__all__ = ["PostgresBackend"]

_OLDEST_READ: Final = 1
"""The oldest schema version that is read without an upgrade."""
_BLOBS_SINCE: Final = 2

_CAPABILITIES: Final = frozenset(
    {
        Capability.QUERY,
        Capability.RETENTION,
        Capability.DELTAS,
        Capability.OFFLOAD,
        Capability.OWN_BLOBS,
        Capability.EXTERNAL_BLOBS,
        Capability.MULTI_PROCESS,
        Capability.SERVER_CLOCK,
        Capability.READ_ONLY,
    }
)


class PostgresBackend(RowBackend):
    """Keeps threads in one schema of a PostgreSQL database, which any number of processes and machines may share.

    Every call is one statement in autocommit on a connection of a pool, so one round trip; a batch of commits is one
    transaction, so one flush of the server's log.  No state of a session is used: PgBouncer may hand connections out
    by the transaction.

    Args:
        url: The URL of the database, as libpq takes it: ``postgresql://user@host:5432/database``.  What it leaves out,
            libpq's environment says (``PGHOST``, ``PGPASSWORD``, ...).
        options: See `PostgresOptions`.

    Raises:
        InvalidInputError: The URL is none of a PostgreSQL database.
    """

    capabilities = _CAPABILITIES
    batching = Batching(max_items=64, max_bytes=4 << 20, in_flight=2, threaded=False)

    def __init__(self, url: str, *, options: PostgresOptions | None = None) -> None:
        self._address = Address.of(url, PostgresOptions() if options is None else options)
        self._schema = quoted(self._address.options.schema)
        self._pool: Pool | None = None
        self._closing: Pool | None = None
        self._read_only = False
        self._version = 0  # of the schema, as far as it was looked at
        self._calls = Calls(self._schema)
        self._head, self._range, self._blobs, self._list, self._version_of = (
            statement.replace("{s}", self._schema) for statement in (HEAD, RANGE, BLOBS, LIST, VERSION_OF)
        )
        self._latest, self._latest_of_all = (
            statement.replace("{s}", self._schema) for statement in (LATEST, LATEST_OF_ALL)
        )

    def __repr__(self) -> str:
        return f"<PostgresBackend {self._address}>"

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if self._pool is not None:
            raise UsageError(f"{self._address}: the backend is open already")
        self._read_only = read_only
        pool = Pool(self._address)
        self._version = await self._prepare(pool, create=not read_only and setup is Setup.AUTO)
        if read_only and not self._version:
            raise never_set_up(self._address)
        self._pool = pool
        self._loads = Loads(functools.partial(self._read_latest, pool), pool.start)
        await pool.open()

    async def _prepare(self, pool: Pool, *, create: bool) -> int:
        """Look at the schema, and set it up if asked to, on a connection of its own; return the version."""
        async with pool.apart() as connection:
            version, _ = await look(connection, self._address)
            if create and version < VERSION:
                await set_up(connection, self._address)
                return VERSION
        return version

    async def close(self) -> None:
        if self._pool is not None:
            self._closing, self._pool = self._pool, None
        if self._closing is not None:  # also when an earlier close was cancelled
            await self._closing.close()

    async def setup(self) -> None:
        self._version = await self._prepare(self._opened(writing=True), create=True)

    async def ping(self) -> None:
        """Return when the server has answered, through the pool, as any other call would; for a health check.

        Raises:
            StoreUnavailableError: It did not, or no connection was free in time.
            SchemaVersionError: The tables are gone, or of a newer version.
        """
        pool = self._opened()
        self._version = looked(self._address, await pool.fetch(self._version_of, ()))

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        pool = self._opened(writing=True)
        if not batch:
            return []
        call = self._calls.of(batch)
        if self._version < VERSION:
            await self._look_again(VERSION)
        thread_id = batch[0].thread_id if len(batch) == 1 else None
        answer = await pool.write(call.statement, call.values, call.formats, thread_id=thread_id)
        return outcomes(batch, call.order, answer)

    async def read_head(self, thread_id: str) -> Head | None:
        records = await self._read(self._head, (thread_id,), thread_id)
        return head_from(records[0]) if records else None

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        if first is None:
            self._opened()
            return await self._loads.load(thread_id)
        values = {"thread_id": thread_id, "first": first, "last": last}
        records = await self._read(self._range, values, thread_id)
        return [Row(*record) for record in records]

    async def _read_latest(self, pool: Pool, threads: Sequence[str]) -> dict[str, list[Row]]:
        if not self._version:
            await self._look_again(_OLDEST_READ)
        if len(threads) == 1:
            (thread_id,) = threads
            records = await pool.fetch(self._latest, {"thread_id": thread_id}, thread_id=thread_id)
            return {thread_id: [Row(*record) for record in records]}
        found: dict[str, list[Row]] = {}
        for thread_id, *record in await pool.fetch(self._latest_of_all, (text_array(threads),)):
            found.setdefault(thread_id, []).append(Row(*record))
        return found

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        if not digests:
            return {}
        if 0 < self._version < _BLOBS_SINCE:
            await self._look_again(_OLDEST_READ)
            if self._version < _BLOBS_SINCE:
                return {}
        return dict(await self._read(self._blobs, (thread_id, text_array(list(digests))), thread_id))

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        page = page_statement(query)
        if page is None:
            return []
        statement, values = page
        records = await self._read(self._list, (statement.replace("{s}", self._schema), values))
        return [head_from(record, envelope=record[-1] or b"") for record in records]

    async def _read(
        self, statement: str, values: Sequence[Any] | Mapping[str, Any], thread_id: str | None = None
    ) -> list[tuple[Any, ...]]:
        pool = self._opened()
        if not self._version:
            await self._look_again(_OLDEST_READ)
        return await pool.fetch(statement, values, thread_id=thread_id)

    def _opened(self, *, writing: bool = False) -> Pool:
        if self._pool is None:
            raise StoreClosedError(f"{self._address}: the store is not open")
        if writing and self._read_only:
            raise ReadOnlyError(f"{self._address}: the store was opened read-only")
        return self._pool

    async def _look_again(self, oldest: int) -> None:
        """See whether somebody has set the store up meanwhile; the answer is remembered."""
        self._version = await self._prepare(self._opened(), create=False)
        if self._version < oldest:
            raise never_set_up(self._address, str(self._version or "none"))
