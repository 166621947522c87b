"""What servers and the wire do to a store becomes an error of ours, from its cause; and the store goes on."""

import asyncio
import os
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from redis_support import HOUR, Place, opened, save, with_backend

from strata_conformance.servers import FaultProxy, ServerFailedError, ValkeyServer
from strata_conformance.servers.fixtures import server_or_outcome
from strata_core.errors import (
    CorruptCheckpointError,
    StoreBusyError,
    StoreClosedError,
    StoreUnavailableError,
)
from strata_core.rows import Commit, Committed, HeadQuery, Refused, Take
from strata_redis import RedisBackend
from strata_redis._calls import Lost, ServerError
from strata_redis._errors import may_have_happened, unavailable
from strata_redis._node import Node

QUICK = timedelta(milliseconds=200)


@pytest.fixture
def own() -> Iterator[ValkeyServer]:
    """A server that the test may stop and freeze."""
    with server_or_outcome(ValkeyServer(own=True)) as server:
        yield server


def reads(backend: RedisBackend) -> list[Callable[[], Awaitable[Any]]]:
    return [
        lambda: backend.read_head("t"),
        lambda: backend.read("t", None, None),
        lambda: backend.read_blobs("t", ["sha256:0"]),
        lambda: backend.list_heads(HeadQuery()),
        lambda: backend.list_heads(HeadQuery(due_until=5)),
        backend.ping,
    ]


def test_a_lost_answer_may_have_been_a_write_and_is_recognised_when_repeated(
    valkey: Place, valkey_proxy: FaultProxy
) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        commit = save("t")
        valkey_proxy.reset("reply", match=b"EVALSHA")
        with pytest.raises(StoreUnavailableError) as caught:
            await backend.commit([commit])
        (again,) = await backend.commit([commit])

        assert caught.value.maybe_written
        assert caught.value.__cause__ is not None
        assert isinstance(again, Committed)
        assert (1, True) == (again.sequence, again.repeated)
        assert 2 == len(await backend.read("t", 0, None))

    with_backend(valkey_proxy.url(valkey.url), check)


def test_a_script_whose_answer_was_lost_is_not_sent_twice(valkey: Place, valkey_proxy: FaultProxy) -> None:
    """The driver would do so by itself."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        valkey_proxy.reset("reply", match=b"EVALSHA")
        before = valkey_proxy.messages["EVALSHA"]
        with pytest.raises(StoreUnavailableError):
            await backend.commit([Commit("u", os.urandom(8), lease=Take("me", HOUR))])

        assert 1 == valkey_proxy.messages["EVALSHA"] - before

    with_backend(valkey_proxy.url(valkey.url), check)


def test_a_batch_of_which_one_answer_is_lost_is_done_once(valkey: Place, valkey_proxy: FaultProxy) -> None:
    async def check(backend: RedisBackend) -> None:
        assert backend._server is not None
        backend._server.spans = False  # as in a cluster: one script of each bucket
        await backend.commit([save("t")])
        batch = [save(f"t{number}") for number in range(40)]
        valkey_proxy.reset("reply", nth=5, match=b"EVALSHA")
        with pytest.raises(StoreUnavailableError) as caught:
            await backend.commit(batch)
        again = await backend.commit(batch)

        assert caught.value.maybe_written
        assert [0] * 40 == [outcome.sequence for outcome in again if isinstance(outcome, Committed)]
        assert any(isinstance(outcome, Committed) and outcome.repeated for outcome in again)
        assert [1] * 40 == [len(await backend.read(f"t{number}", 0, None)) for number in range(40)]

    with_backend(valkey_proxy.url(valkey.url), check)


def test_a_server_that_refuses_connections_is_unavailable_and_comes_back(
    valkey: Place, valkey_proxy: FaultProxy
) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        valkey_proxy.refuse()
        valkey_proxy.reset_all()
        with pytest.raises(StoreUnavailableError):
            await backend.commit([save("t")])  # on the connection that broke
        with pytest.raises(StoreUnavailableError) as caught:
            await backend.commit([save("t")])
        for read in reads(backend):
            with pytest.raises(StoreUnavailableError) as refused:
                await read()
            assert not refused.value.maybe_written
        valkey_proxy.accept()
        for read in reads(backend):
            await read()

        assert not caught.value.maybe_written
        assert valkey.prefix in str(caught.value)

    with_backend(valkey_proxy.url(valkey.url), check)


def test_a_server_that_hangs_is_given_up_after_the_timeout(valkey: Place, valkey_proxy: FaultProxy) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        request = valkey_proxy.hang("request", match=b"EVALSHA")
        with pytest.raises(StoreUnavailableError, match="did not answer in time") as caught:
            await backend.commit([save("t")])
        valkey_proxy.release(request)
        for read in reads(backend):
            await read()

        assert caught.value.maybe_written
        assert isinstance(caught.value.__cause__, TimeoutError)

    with_backend(valkey_proxy.url(valkey.url), check, timeout=QUICK)


def test_a_server_that_accepts_and_says_nothing_is_given_up_after_the_connect_timeout(
    valkey: Place, valkey_proxy: FaultProxy
) -> None:
    valkey_proxy.hang("connect")
    url = valkey_proxy.url(valkey.url).replace("redis://", "redis://:password@")
    with pytest.raises(StoreUnavailableError, match="could not be reached in time") as caught:
        with_backend(url, lambda backend: backend.ping(), connect_timeout=QUICK)

    assert not caught.value.maybe_written
    assert "password" not in str(caught.value)


def test_who_finds_every_connection_in_use_for_too_long_is_told_that_it_is_busy(own: ValkeyServer) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        own.pause()
        slow = [asyncio.ensure_future(backend.read_head("t")) for _ in range(2)]
        await asyncio.sleep(0)
        assert backend._server is not None
        node: Node = backend._server._route._node  # type: ignore[attr-defined]  # one server
        node._pool._patience = 0.05
        with pytest.raises(StoreBusyError, match="every connection stayed in use") as caught:
            await backend.commit([save("t")])
        own.resume()
        heads = await asyncio.gather(*slow)

        assert not caught.value.maybe_written
        assert [0, 0] == [head.sequence for head in heads if head is not None]

    with_backend(own.url, check, pool_size=2)


def test_a_cancelled_call_leaves_no_answer_for_the_next_one(valkey: Place, valkey_proxy: FaultProxy) -> None:
    """Whoever takes the connection next must not read what was meant for the one before."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", body=b"t"), save("u", body=b"u")])
        for delay in range(40):
            valkey_proxy.delay(replies=0.002)
            call = asyncio.ensure_future(backend.read("t", None, None))
            await asyncio.sleep(delay * 0.0002)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            valkey_proxy.delay()
            rows = await backend.read("u", None, None)

            assert b"u" == rows[0].body

    with_backend(valkey_proxy.url(valkey.url), check, pool_size=1)


def test_a_waiter_that_is_cancelled_takes_no_connection_with_it(valkey: Place) -> None:
    """Also when the connection was handed to it in the very turn in which it was cancelled."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        for turns in range(30):
            calls = [asyncio.ensure_future(backend.read_head("t")) for _ in range(4)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for call in calls[:3]:
                call.cancel()
            got = await asyncio.gather(*calls, return_exceptions=True)
            assert got[3] is not None
            assert not isinstance(got[3], BaseException)
        head = await backend.read_head("t")

        assert head is not None

    with_backend(valkey, check, pool_size=1, timeout=timedelta(seconds=5))


def test_a_restart_between_two_calls_is_not_noticed_by_a_save(own: ValkeyServer) -> None:
    """What was sent over a connection that the server had closed was never done, and a new one is made."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        own.stop()
        own.start()
        for _ in range(10):  # the loop sees that the connection ended
            await asyncio.sleep(0)
        (done,) = await backend.commit([save("t")])

        assert isinstance(done, Committed)

    with_backend(own.url, check)


def test_a_server_that_wants_a_password_is_unavailable_and_no_secret_is_told(valkey: Place) -> None:
    (server,) = valkey.servers
    server.command("ACL", "SETUSER", "guarded", "reset", "on", ">right", "~*", "+@all")
    url = valkey.url.replace("redis://", "redis://guarded:wrong-secret@")
    try:
        with pytest.raises(StoreUnavailableError) as caught:
            with_backend(url, lambda backend: backend.ping())
        told = "".join(traceback.format_exception(caught.value))
        with_backend(valkey.url.replace("redis://", "redis://guarded:right@"), lambda backend: backend.ping())
    finally:
        server.command("ACL", "DELUSER", "guarded")

    assert not caught.value.maybe_written
    assert "guarded:***" in str(caught.value)
    assert "wrong-secret" not in told
    assert "wrong-secret" not in repr(RedisBackend(url)) + repr(RedisBackend(url)._target)


def test_a_user_who_loses_a_right_meanwhile_is_told(place: Place) -> None:
    (server,) = place.servers
    server.command("ACL", "SETUSER", "weak", "reset", "on", ">pw", "~*", "+@all")

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        server.command("ACL", "SETUSER", "weak", "-evalsha")
        with pytest.raises(StoreUnavailableError, match="may not do that") as caught:
            await backend.commit([save("t")])
        assert not caught.value.maybe_written

    try:
        with_backend(place.url.replace("redis://", "redis://weak:pw@"), check)
    finally:
        server.command("ACL", "DELUSER", "weak")


def test_a_server_busy_with_a_script_is_busy(own: ValkeyServer) -> None:
    own.command("CONFIG", "SET", "busy-reply-threshold", "1")
    place = Place((own,), own.url, "p")

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t")])
        waiting = asyncio.get_running_loop().run_in_executor(None, _run_endless, own)
        try:
            for _ in range(1000):
                try:
                    await backend.commit([save("t")])
                except StoreBusyError as error:
                    caught = error
                    break
        finally:
            own.command("SCRIPT", "KILL")
            await waiting
        assert not caught.maybe_written
        (done,) = await backend.commit([save("t")])
        assert isinstance(done, Committed)

    with_backend(place, check)


def _run_endless(server: ValkeyServer) -> None:
    with suppress(ServerFailedError):  # it is killed
        server.command("EVAL", "while true do end", 0)


def test_a_closed_backend_says_so(valkey: Place) -> None:
    async def check() -> None:
        async with opened(valkey) as backend:
            pass
        for call in [*reads(backend), lambda: backend.commit([save("t")]), backend.setup]:
            with pytest.raises(StoreClosedError):
                await call()
        await backend.close()

    asyncio.run(check())


@pytest.mark.parametrize(
    ("answer", "kind", "told", "maybe"),
    [
        (ServerError("OOM command not allowed"), StoreUnavailableError, "memory is full", False),
        (ServerError("READONLY You can't write"), StoreUnavailableError, "is a replica", False),
        (ServerError("LOADING Redis is loading"), StoreUnavailableError, "still loading", False),
        (ServerError("CLUSTERDOWN The cluster is down"), StoreUnavailableError, "all of its slots", False),
        (ServerError("ASK 5 10.0.0.1:6379"), StoreUnavailableError, "to and fro", False),
        (ServerError("NOPERM this user has no permissions"), StoreUnavailableError, "may not do that", False),
        (ServerError("NOPERM no permissions script: abc, on @user_script:9."), StoreUnavailableError, "may not", True),
        (ServerError("WRONGPASS invalid username-password pair"), StoreUnavailableError, "not let this user in", False),
        (ServerError("MISCONF Errors writing to the AOF"), StoreUnavailableError, "write to its disk", False),
        (ServerError("NOREPLICAS Not enough good replicas"), StoreUnavailableError, "fewer replicas", False),
        (ServerError("BUSY Redis is busy running a script"), StoreBusyError, "busy with a script", False),
        (
            ServerError(
                "ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -OOM command not allowed"
            ),
            StoreUnavailableError,
            "memory is full",
            False,
        ),
        (ServerError("WRONGTYPE Operation against a key"), CorruptCheckpointError, "another kind of key", False),
        (ServerError("ERR something else"), StoreUnavailableError, "something else", True),
        (Lost(ConnectionResetError("reset"), sent=True), StoreUnavailableError, "reset", True),
        (Lost(ConnectionRefusedError("refused"), sent=False), StoreUnavailableError, "refused", False),
        (Lost(TimeoutError(), sent=True), StoreUnavailableError, "did not answer in time", True),
        (Lost(TimeoutError(), sent=False), StoreUnavailableError, "could not be reached in time", False),
        (Lost(TimeoutError(), sent=False, busy=True), StoreBusyError, "every connection", False),
    ],
)
def test_each_answer_has_its_error(answer: Exception, kind: type[Exception], told: str, maybe: bool) -> None:
    error = unavailable(answer, "redis://host", maybe_written=may_have_happened(answer))

    assert kind is type(error)
    assert told in str(error)
    assert maybe == may_have_happened(answer) == getattr(error, "maybe_written", False)
    assert error.__cause__ in {answer, getattr(answer, "cause", None)}


def test_a_refused_commit_is_told_by_the_lease_that_is_in_the_way(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", lease=Take("who äöü with spaces\nand lines", HOUR))])
        (refused,) = await backend.commit([Commit("t", os.urandom(8), lease=Take("me", HOUR))])

        assert isinstance(refused, Refused)
        assert refused.head is not None
        assert "who äöü with spaces\nand lines" == refused.head.owner

    with_backend(place, check)
