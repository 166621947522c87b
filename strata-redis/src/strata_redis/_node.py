"""One server: sends it commands, several at once, each answered or known to be lost."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence

from strata_core.errors import InvalidInputError
from strata_redis._address import Address, Target
from strata_redis._calls import Answer, Lost, ServerError
from strata_redis._connection import Connection, Login
from strata_redis._options import RedisOptions
from strata_redis._pool import Pool

__all__ = ["Node", "NodeMaker", "node_maker", "sentinel_maker"]

NodeMaker = Callable[[Address], "Node"]


class Node:
    """A server and the connections to it.

    Nothing is ever sent twice here.

    Args:
        address: Where it listens.
        login: Who to be there.
        options: Sizes and times.
    """

    def __init__(self, address: Address, login: Login, options: RedisOptions) -> None:
        self.address = address
        self._connect_timeout = options.connect_timeout.total_seconds()
        self._timeout = options.timeout.total_seconds()
        self._replicas = options.replicas
        self._wait = (b"WAIT", b"%d" % options.replicas, b"%d" % (self._timeout * 500 + 1))  # half of the milliseconds
        self._pool = Pool(lambda: Connection(address, login), options.pool_size, self._timeout)

    async def ask(self, commands: Sequence[Sequence[bytes]], *, writes: bool = False) -> list[Answer]:
        """Send commands in one go over one connection; return an answer for each.

        Where they write, and replicas must have that, what too few of them received in time is `Lost`.  Cancelled
        halfway, it closes the connection: whoever takes the next one reads no answer of somebody else's.
        """
        try:
            connection = await self._pool.take()
        except TimeoutError as error:
            return [Lost(error, sent=False, busy=True)] * len(commands)
        try:
            if not connection.is_open:
                try:
                    await connection.open(self._connect_timeout)
                except (OSError, TimeoutError, ServerError) as error:
                    return [Lost(error, sent=False)] * len(commands)
            if writes and self._replicas:
                return self._received(await connection.ask([*commands, self._wait], self._timeout))
            return await connection.ask(commands, self._timeout)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._pool.give(connection)

    def _received(self, answers: list[Answer]) -> list[Answer]:
        """Return answers without the last one, which tells how many replicas have what the others are about."""
        count = answers.pop()
        if isinstance(count, int) and count >= self._replicas:
            return answers
        why: BaseException
        if isinstance(count, Lost):
            why = count.cause
        elif isinstance(count, Exception):
            why = count
        else:
            why = ConnectionError(f"{self.address}: {count!r} of {self._replicas} replicas have the write")
        return [answer if isinstance(answer, Exception) else Lost(why, sent=True) for answer in answers]

    async def close(self) -> None:
        """Disconnect."""
        await self._pool.close()


def node_maker(target: Target, options: RedisOptions) -> NodeMaker:
    """Return what makes the nodes that a URL leads to.

    Raises:
        InvalidInputError: A file with certificates cannot be read.
    """
    return _maker(target, options, target.username, target.password, target.database)


def sentinel_maker(target: Target, options: RedisOptions) -> NodeMaker:
    """Return what makes the Sentinels of a URL.

    Raises:
        InvalidInputError: A file with certificates cannot be read.
    """
    return _maker(target, options, options.sentinel_username, options.sentinel_password, 0)


def _maker(
    target: Target, options: RedisOptions, username: str | None, password: str | None, database: int
) -> NodeMaker:
    login = Login(username, password, database, _encryption(options) if target.tls else None)
    return lambda address: Node(address, login, options)


def _encryption(options: RedisOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
    except OSError as error:
        raise InvalidInputError("ca_file", f"{options.ca_file!r} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if options.certificate_file is not None:
        try:
            context.load_cert_chain(options.certificate_file, options.key_file)
        except OSError as error:
            files = f"{options.certificate_file!r} with the key {options.key_file!r}"
            raise InvalidInputError("certificate_file", f"{files} cannot be used: {error}") from error
    return context
