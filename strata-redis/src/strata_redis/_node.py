"""One server: sends it commands, several at once, each answered or known to be lost."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from redis.asyncio.connection import Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, BusyLoadingError, RedisError, ResponseError

from strata_redis._address import Address, Target
from strata_redis._calls import Answer, Lost, pack
from strata_redis._options import RedisOptions
from strata_redis._pool import Pool

__all__ = ["Node", "NodeMaker", "node_maker", "sentinel_maker"]

NodeMaker = Callable[[Address], "Node"]


class Node:
    """A server and the connections to it.

    Nothing is ever sent twice: the driver would repeat a script whose answer was lost, so what it is used for is one
    connection at a time, without retries.

    Args:
        address: Where it listens.
        make: Makes a connection.
        options: Sizes and times.
    """

    def __init__(self, address: Address, make: Callable[[], Connection], options: RedisOptions) -> None:
        self.address = address
        self._connect_timeout = options.connect_timeout.total_seconds()
        self._timeout = options.timeout.total_seconds()
        self._pool = Pool(make, options.pool_size, self._timeout)

    async def ask(self, commands: Sequence[Sequence[bytes]]) -> list[Answer]:
        """Send commands in one go over one connection; return an answer for each.

        Cancelled halfway, it closes the connection: whoever takes the next one reads no answer of somebody else's.
        """
        try:
            connection = await self._pool.take()
        except TimeoutError as error:
            return [Lost(error, sent=False, busy=True)] * len(commands)
        try:
            return await self._ask(connection, commands)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.give(connection)

    async def _ask(self, connection: Connection, commands: Sequence[Sequence[bytes]]) -> list[Answer]:
        try:
            async with asyncio.timeout(self._connect_timeout):
                await _prepare(connection)
        except (RedisError, OSError, TimeoutError) as error:
            await connection.disconnect(nowait=True)
            return [Lost(error, sent=False)] * len(commands)
        answers: list[Answer] = []
        try:
            async with asyncio.timeout(self._timeout):
                await connection.send_packed_command(pack(commands), check_health=False)
                for _ in commands:
                    try:
                        answers.append(await connection.read_response(disable_decoding=True))
                    except ResponseError as error:
                        answers.append(error)
        except (BusyLoadingError, AuthenticationError, AuthorizationError) as error:
            answers.append(error)  # an answer like others, after which the driver hangs up
            cause: Exception = error
        except (RedisError, OSError, TimeoutError) as error:
            cause = error
        if len(answers) < len(commands):
            await connection.disconnect(nowait=True)
            answers += [Lost(cause, sent=True)] * (len(commands) - len(answers))
        return answers

    async def close(self) -> None:
        """Disconnect."""
        await self._pool.close()


async def _prepare(connection: Connection) -> None:
    """Connect, also where the server hung up since, or left something unread."""
    if connection.is_connected:
        has_more = getattr(connection, "can_read", None) or connection.can_read_destructive
        try:
            if not await has_more():
                return
        except (RedisError, OSError):
            pass
        await connection.disconnect(nowait=True)
    await connection.connect()  # type: ignore[no-untyped-call]  # the driver's


def node_maker(target: Target, options: RedisOptions) -> NodeMaker:
    """Return what makes the nodes that a URL leads to."""
    return _maker(target, options, target.username, target.password, target.database)


def sentinel_maker(target: Target, options: RedisOptions) -> NodeMaker:
    """Return what makes the Sentinels of a URL."""
    return _maker(target, options, options.sentinel_username, options.sentinel_password, 0)


def _maker(
    target: Target, options: RedisOptions, username: str | None, password: str | None, database: int
) -> NodeMaker:
    common: dict[str, Any] = {
        "db": database,
        "username": username,
        "password": password,
        "socket_timeout": None,  # one limit for all answers together, see `Node.ask`
        "socket_connect_timeout": options.connect_timeout.total_seconds(),
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
    }
    kind: type[Connection] = Connection
    if target.tls:
        kind = SSLConnection
        common |= {
            "ssl_ca_certs": options.ca_file,
            "ssl_certfile": options.certificate_file,
            "ssl_keyfile": options.key_file,
            "ssl_min_version": ssl.TLSVersion.TLSv1_2,
        }
    return lambda address: Node(address, lambda: kind(host=address.host, port=address.port, **common), options)
