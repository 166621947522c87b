"""The Redis row backend."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

import attrs

from strata_core.capabilities import Capability
from strata_core.errors import (
    InvalidInputError,
    ReadOnlyError,
    StoreClosedError,
    StrataError,
    UnsupportedError,
    UsageError,
)
from strata_core.options import Setup
from strata_core.rows import Batching, Commit, Committed, Head, HeadQuery, Refused, Row, RowBackend
from strata_redis._address import Target
from strata_redis._commit import commit
from strata_redis._keys import Keys
from strata_redis._list import list_heads
from strata_redis._options import RedisOptions
from strata_redis._read import read_blobs, read_head, read_rows
from strata_redis._server import Server, connect
from strata_redis._setup import look, not_set_up, set_up
from strata_redis._sweep import sweep

__all__ = ["RedisBackend"]

_logger: Final = logging.getLogger("strata_redis")
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
        Capability.EXPIRY,
        Capability.READ_ONLY,
    }
)
WITHOUT_EXTERNAL_BLOBS: Final = (
    "finished_thread_ttl of RedisOptions cannot let values expire that offload.blobs keeps in a store of their own; "
    "leave one of the two out"
)
SWEEP_EVERY: Final = 60.0
"""Seconds from one sweep of expired threads to the next, where threads expire."""


class RedisBackend(RowBackend):
    """Keeps threads in Redis or Valkey, in one server or a cluster.

    A save is one script, which judges and writes under the server's clock.  Saves that wait together are one script;
    in a cluster they are one message to each server, with one script a bucket.  A load is one script.  No write is ever
    sent twice by itself.

    Args:
        url: Where the servers are; see the README.
        options: See `RedisOptions`.

    Raises:
        InvalidInputError: The URL names no server, or gives another prefix than the options.
    """

    batching = Batching(max_items=64, max_bytes=4 << 20, in_flight=2)

    def __init__(self, url: str, *, options: RedisOptions | None = None) -> None:
        chosen = RedisOptions() if options is None else options
        self._target = Target.parse(url)
        if self._target.prefix is not None:
            if chosen.prefix not in {self._target.prefix, RedisOptions().prefix}:
                raise InvalidInputError(
                    "options", f"has the prefix {chosen.prefix!r}, and the URL {self._target.prefix!r}"
                )
            chosen = attrs.evolve(chosen, prefix=self._target.prefix)
        self._options = chosen
        self._where = self._target.shown
        ttl = chosen.finished_thread_ttl
        self._finished_ttl = 0 if ttl is None else ttl // timedelta(milliseconds=1)
        self.capabilities = _CAPABILITIES
        if ttl is not None:
            self.capabilities = _CAPABILITIES - {Capability.EXTERNAL_BLOBS}
            self.absent = {Capability.EXTERNAL_BLOBS: WITHOUT_EXTERNAL_BLOBS}
        self._server: Server | None = None
        self._keys: Keys | None = None
        self._read_only = False
        self._swept_at = 0.0

    def __repr__(self) -> str:
        return f"RedisBackend({self._where!r})"

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if self._server is not None:
            raise UsageError(f"{self._where}: the backend is open already")
        server = connect(self._target, self._options, only_reads=read_only)
        self._read_only, self._keys = read_only, None
        try:
            if read_only:
                self._keys = await look(server, self._options, self._where)
                if self._keys is None:
                    raise not_set_up(self._where, self._options.prefix)
            else:
                self._keys = await set_up(server, self._options, self._where, create=setup is Setup.AUTO)
        except BaseException:
            await server.close()
            raise
        self._server = server
        self._swept_at = time.monotonic()

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def setup(self) -> None:
        self._keys = await set_up(self._writable(), self._options, self._where, create=True)

    async def ping(self) -> None:
        """Return when the server has answered, over the pool, as any other call would; for a health check.

        Raises:
            StoreUnavailableError: It did not, or no connection was free in time.
            SchemaVersionError: The store is gone, or of a newer format.
        """
        await self._find()

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        server = self._writable()
        if not batch:
            return []
        if self._finished_ttl:
            refuse_external(batch)
        keys = self._keys or await self._find()
        outcomes = await commit(server, keys, batch, self._finished_ttl, self._where)
        if self._finished_ttl and time.monotonic() > self._swept_at + SWEEP_EVERY:
            await self._sweep(server, keys)
        return outcomes

    async def read_head(self, thread_id: str) -> Head | None:
        return await read_head(self._open(), self._keys or await self._find(), thread_id, self._where)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return await read_rows(self._open(), self._keys or await self._find(), thread_id, first, last, self._where)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return await read_blobs(self._open(), self._keys or await self._find(), thread_id, digests, self._where)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        """As promised; what a purge begins with, a listing of heads without rows, also clears up expired threads."""
        server, keys = self._open(), self._keys or await self._find()
        if query.rowless and not self._read_only:
            await sweep(server, keys, self._where)
        return await list_heads(server, keys, query, self._where)

    def _open(self) -> Server:
        if self._server is None:
            raise StoreClosedError(f"{self._where}: the store is not open")
        return self._server

    def _writable(self) -> Server:
        server = self._open()
        if self._read_only:
            raise ReadOnlyError(f"{self._where}: the store was opened read-only")
        return server

    async def _find(self) -> Keys:
        """Look whether somebody has set the store up since it was opened."""
        keys = await look(self._open(), self._options, self._where)
        if keys is None:
            raise not_set_up(self._where, self._options.prefix)
        self._keys = keys
        return keys

    async def _sweep(self, server: Server, keys: Keys) -> None:
        """Clear up expired threads beside a save, which must not fail for it."""
        self._swept_at = time.monotonic()
        try:
            await sweep(server, keys, self._where)
        except StrataError as error:
            _logger.warning("clearing up expired threads failed: %s", error)


def refuse_external(batch: Sequence[Commit]) -> None:
    """Refuse commits whose values no server can let expire."""
    if any(item.external for item in batch):
        raise UnsupportedError(Capability.EXTERNAL_BLOBS, WITHOUT_EXTERNAL_BLOBS)
