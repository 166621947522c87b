"""What is measured on each database: Strata, LangGraph's own saver, and the bare driver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

from floor import Floor

from strata_core import open_store
from strata_core.ports import StorePorts

__all__ = ["Database", "Postgres", "Redis", "Sqlite"]


class Database(Protocol):
    """A database with durable settings.  Each peer of a table gets a storage of its own, below a folder of its own."""

    name: str

    async def strata(self, stack: AsyncExitStack, folder: Path, **options: Any) -> StorePorts:
        """Return an open store."""
        ...

    async def saver(self, stack: AsyncExitStack, folder: Path) -> Any:
        """Return LangGraph's saver, set up."""
        ...

    async def floor(self, stack: AsyncExitStack, folder: Path) -> Floor:
        """Return the bare driver's store."""
        ...


class Sqlite:
    """WAL with synchronous=FULL."""

    name = "SQLite"

    async def strata(self, stack: AsyncExitStack, folder: Path, **options: Any) -> StorePorts:
        return await stack.enter_async_context(open_store(folder / "strata.db", **options))

    async def saver(self, stack: AsyncExitStack, folder: Path) -> Any:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db")))
        await saver.setup()
        await saver.conn.execute("pragma synchronous=full")
        return saver

    async def floor(self, stack: AsyncExitStack, folder: Path) -> Floor:
        from floor_sqlite import open_floor

        return await open_floor(stack, folder)


class Postgres:
    """A server with fsync and synchronous_commit on; a database for each peer.

    Args:
        fresh: Makes an empty database and returns its URL.
    """

    name = "Postgres"

    def __init__(self, fresh: Callable[[], str]) -> None:
        self._fresh = fresh

    async def strata(self, stack: AsyncExitStack, folder: Path, **options: Any) -> StorePorts:
        return await stack.enter_async_context(open_store(self._fresh(), **options))

    async def saver(self, stack: AsyncExitStack, folder: Path) -> Any:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        saver = await stack.enter_async_context(AsyncPostgresSaver.from_conn_string(self._fresh()))
        await saver.setup()
        return saver

    async def floor(self, stack: AsyncExitStack, folder: Path) -> Floor:
        from floor_postgres import open_floor

        return await open_floor(stack, self._fresh())


class Redis:
    """A server without modules; a prefix for each peer.

    Args:
        url: Where it is.
    """

    name = "Redis"

    def __init__(self, url: str) -> None:
        self._url = url

    async def strata(self, stack: AsyncExitStack, folder: Path, **options: Any) -> StorePorts:
        return await stack.enter_async_context(open_store(f"{self._url}?prefix={_prefix(folder)}", **options))

    async def saver(self, stack: AsyncExitStack, folder: Path) -> Any:
        from langgraph_checkpoint_plainredis import AsyncRedisSaver
        from redis.asyncio import BlockingConnectionPool
        from redis.asyncio import Redis as Client

        # Its own pool raises when fifty runs want a connection at once.
        pool = BlockingConnectionPool.from_url(self._url, max_connections=50, timeout=None)
        saver = AsyncRedisSaver(Client(connection_pool=pool), prefix=_prefix(folder))
        stack.push_async_callback(saver.aclose)
        return saver

    async def floor(self, stack: AsyncExitStack, folder: Path) -> Floor:
        from floor_redis import open_floor

        return await open_floor(stack, self._url, _prefix(folder))


def _prefix(folder: Path) -> str:
    return f"{folder.parent.name}-{folder.name}"
