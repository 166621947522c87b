"""What a server does that is none, or speaks out of turn, loses the connection and no more."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from strata_redis._address import Address
from strata_redis._calls import Answer, Lost, ServerError
from strata_redis._connection import Connection, Login


def talk(answer: bytes, use: Callable[[Connection], Awaitable[list[Answer]]]) -> list[Answer]:
    """Connect to somebody who answers so, whatever is said."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        await reader.read()
        writer.close()

    async def go() -> list[Answer]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        connection = Connection(Address("127.0.0.1", server.sockets[0].getsockname()[1]), Login(None, None))
        try:
            await connection.open(10)
            return await use(connection)
        finally:
            await connection.close()
            server.close()
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0)

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("answer", "told"),
    [(b"HTTP/1.1 400 Bad Request\r\n", "does not speak as Redis does"), (b"$-x\r\n", "does not speak")],
)
def test_somebody_else_at_the_port_is_told_apart(answer: bytes, told: str) -> None:
    (lost,) = talk(answer, lambda connection: connection.ask([(b"PING",)], 10))

    assert isinstance(lost, Lost)
    assert lost.sent
    assert told in str(lost)


def test_an_answer_too_many_is_nobody_s() -> None:
    """Whoever asks next on that connection would take it for theirs."""

    async def use(connection: Connection) -> list[Answer]:
        answers = await connection.ask([(b"PING",)], 10)
        assert not connection.is_open
        return answers + await connection.ask([(b"PING",)], 10)

    first, second = talk(b"+one\r\n+two\r\n", use)

    assert b"one" == first
    assert isinstance(second, Lost)
    assert "more than it was asked" in str(second)


def test_answers_that_came_before_the_connection_was_lost_count() -> None:
    async def use(connection: Connection) -> list[Answer]:
        return await connection.ask([(b"GET", b"a"), (b"GET", b"b")], 0.05)

    first, second = talk(b"+one\r\n", use)

    assert b"one" == first
    assert isinstance(second, Lost)
    assert isinstance(second.cause, TimeoutError)
    assert second.sent


@pytest.mark.parametrize("more", [b"+tw", b"*2\r\n+two\r\n", b"$3", b"\r"])
def test_the_beginning_of_an_answer_too_many_is_nobody_s_either(more: bytes) -> None:
    """Its end would come when somebody else has asked."""

    async def use(connection: Connection) -> list[Answer]:
        answers = await connection.ask([(b"PING",)], 10)
        assert not connection.is_open
        return answers + await connection.ask([(b"PING",)], 10)

    first, second = talk(b"+one\r\n" + more, use)

    assert b"one" == first
    assert isinstance(second, Lost)
    assert "more than it was asked" in str(second)


@pytest.mark.parametrize(
    "said",
    [
        b"-ERR unknown command 'AUTH', with args beginning with: 'bob' 'hunter2' \r\n",
        b"-ERR unknown command `AUTH`, with args beginning with: `bob`, `hunt\r\n",
        b"-ERR unknown command hunter2\r\n",
    ],
)
def test_a_server_that_repeats_a_password_is_quoted_without_it(said: bytes) -> None:
    """As one does that was told to have no AUTH; it cuts what is long."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        await reader.read()
        writer.close()

    async def go() -> ServerError:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        connection = Connection(address, Login("bob", "hunter2"))
        with pytest.raises(ServerError) as caught:
            await connection.open(10)
        await connection.close()
        server.close()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        return caught.value

    error = asyncio.run(go())

    assert "hunt" not in str(error)
    assert "ERR unknown command" in str(error)
    assert "ERR" == error.code
    assert error.__cause__ is error.__context__ is None


def test_each_call_on_a_connection_has_its_own_time() -> None:
    """Whether the one before it had more or less."""

    async def use(connection: Connection) -> list[Answer]:
        answers = await connection.ask([(b"GET", b"a")], 60)
        return answers + await connection.ask([(b"GET", b"b")], 0.05)

    first, second = talk(b"+one\r\n", use)

    assert b"one" == first
    assert isinstance(second, Lost)
    assert isinstance(second.cause, TimeoutError)


def test_a_host_that_nobody_knows_is_told_in_the_words_of_the_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def main() -> None:
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        await Connection(Address("no-such-host", 6379), Login(None, None)).open(10)

    with pytest.raises(OSError, match="no-such-host:6379: Name or service not known"):
        asyncio.run(main())
