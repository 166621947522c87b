"""One connection to a server: commands out, answers in, each known to have come or to be lost.

The usual driver is not used: README.md says why.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence

import attrs

from strata_redis._address import Address
from strata_redis._calls import Answer, Lost, ServerError
from strata_redis._resp import Reader, pack

__all__ = ["Connection", "Login"]


@attrs.frozen
class Login:
    """Who to be at a server, and where there.

    Attributes:
        username: None for the default user.
        password: Never shown.
        database: Its number.
        tls: How to encrypt; None for not at all.
    """

    username: str | None
    password: str | None = attrs.field(repr=False)
    database: int = 0
    tls: ssl.SSLContext | None = None

    def commands(self) -> list[Sequence[bytes]]:
        """Return what to say first."""
        commands: list[Sequence[bytes]] = []
        if self.username is not None:
            commands.append((b"AUTH", self.username.encode(), (self.password or "").encode()))
        elif self.password is not None:
            commands.append((b"AUTH", self.password.encode()))
        if self.database:
            commands.append((b"SELECT", b"%d" % self.database))
        return commands

    def without_secrets(self, error: ServerError) -> ServerError:
        """Return what a server said to `commands` without what it repeats of them: one that has no AUTH does."""
        said = str(error).partition(", with args beginning with")[0]
        return ServerError(said.replace(self.password, "***") if self.password else said)


class Connection:
    """A connection for one caller at a time, made when it is wanted, and anew after it was lost.

    Args:
        address: Where the server listens.
        login: Who to be.
    """

    def __init__(self, address: Address, login: Login) -> None:
        self._address = address
        self._login = login
        self._wire: _Wire | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is connected, as far as the loop has heard."""
        return self._wire is not None and self._wire.lost is None

    async def open(self, timeout: float) -> None:
        """Connect and log in.

        Raises:
            OSError: Nobody listens there, or speaks as is wanted.
            TimeoutError: It takes longer than `timeout` seconds.
            ServerError: The server does not let this user in, or has no such database.
        """
        host, tls = self._address.host, self._login.tls
        try:
            async with asyncio.timeout(timeout):
                _, self._wire = await asyncio.get_running_loop().create_connection(
                    _Wire, host, self._address.port, ssl=tls, server_hostname=None if tls is None else host
                )
                if commands := self._login.commands():
                    for answer in await self.ask(commands, timeout):
                        if isinstance(answer, Lost):
                            raise answer.cause
                        if isinstance(answer, ServerError):
                            raise self._login.without_secrets(answer)
        except BaseException as error:
            self.abort()
            if isinstance(error, OSError) and error.errno and not isinstance(error, ssl.SSLError):
                # Of a name that nobody knows, the system's own text says nothing.
                said = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)
                raise type(error)(error.errno, f"{self._address}: {said}") from None
            raise

    async def ask(self, commands: Sequence[Sequence[bytes]], timeout: float) -> list[Answer]:
        """Send commands in one go; return an answer for each, `Lost` for those that did not come.

        Cancelled halfway, it must be given up: see `abort`.

        Args:
            commands: What to send.
            timeout: How many seconds all the answers may take.
        """
        assert self._wire is not None
        return await self._wire.ask(pack(commands), len(commands), timeout)

    def abort(self) -> None:
        """Hang up at once."""
        if self._wire is not None:
            self._wire.abort(ConnectionAbortedError("the connection was given up"))

    async def close(self) -> None:
        """Hang up, and wait until that is done."""
        self.abort()
        if self._wire is not None:
            await asyncio.wait([self._wire.ended])


class _Wire(asyncio.Protocol):
    """A connection from its beginning to its end.

    Attributes:
        lost: Why there is none any more; None while there is.
        ended: Is done when nothing is left of it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._reader = Reader()
        self._answers: list[Answer] = []
        self._missing = 0
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None  # one serves many calls: it costs more than to look at a clock
        self.lost: BaseException | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()

    async def ask(self, content: bytes, count: int, timeout: float) -> list[Answer]:
        self._answers, self._missing = [], count
        if self.lost is None:
            self._waiter = self._loop.create_future()
            self._watch(self._loop.time() + timeout)
            try:
                self._transport.write(content)
                await self._waiter
            finally:
                self._waiter = None
        if self._missing:
            assert self.lost is not None
            self._answers += [Lost(self.lost, sent=True)] * self._missing
        return self._answers

    def _watch(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is not None and self._timer.when() > deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiter is not None:
            if self._loop.time() < self._deadline:
                self._watch(self._deadline)
            else:
                self.abort(TimeoutError())

    def abort(self, why: BaseException) -> None:
        if self.lost is None:
            self._lose(why)
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if self.lost is not None:
            return
        reader = self._reader
        answers = reader.feed(data)
        self._answers += answers
        self._missing -= len(answers)
        if self._missing < 0 or (not self._missing and (reader.is_within or reader.broken)):
            # The next one to ask would take it, or what it is the beginning of, for the answer.
            del self._answers[len(self._answers) + self._missing :]
            self._missing = 0
            self.abort(ConnectionError("the server said more than it was asked"))
        elif reader.broken:
            self.abort(ConnectionError(f"the server does not speak as Redis does: {reader.broken}"))
        elif not self._missing and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(ConnectionResetError("the server closed the connection") if exc is None else exc)
        self.ended.set_result(None)

    def _lose(self, why: BaseException) -> None:
        if self.lost is None:
            self.lost = why
            if self._timer is not None:
                self._timer.cancel()
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
