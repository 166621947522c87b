"""The pool hands connections to who waits longest, and loses none."""

import asyncio
from typing import Any

import pytest

from strata_redis._pool import Pool


class Connection:
    def __init__(self) -> None:
        self.is_closed = False

    def abort(self) -> None:
        self.is_closed = True

    async def close(self) -> None:
        self.abort()


def pool_of(size: int, patience: float = 30.0) -> Any:
    return Pool(Connection, size, patience)  # type: ignore[arg-type]  # as much of a connection as a pool needs


def test_connections_are_used_again_the_latest_first() -> None:
    async def check() -> None:
        pool = pool_of(3)
        one, two = await pool.take(), await pool.take()
        pool.give(one)
        pool.give(two)

        assert two is await pool.take()
        assert one is await pool.take()
        assert await pool.take() not in {one, two}

    asyncio.run(check())


def test_who_waits_longest_is_next() -> None:
    async def check() -> None:
        pool, order = pool_of(1), []
        connection = await pool.take()

        async def wait(number: int) -> None:
            taken = await pool.take()
            order.append(number)
            pool.give(taken)

        waiters = [asyncio.ensure_future(wait(number)) for number in range(5)]
        await asyncio.sleep(0)
        waiters[1].cancel()
        pool.give(connection)
        await asyncio.gather(*waiters, return_exceptions=True)

        assert [0, 2, 3, 4] == order

    asyncio.run(check())


def test_a_connection_handed_to_a_waiter_that_is_being_cancelled_goes_to_the_next() -> None:
    """The driver's own pool would leave the next one waiting."""

    async def check() -> None:
        pool = pool_of(1)
        connection = await pool.take()
        first, second = asyncio.ensure_future(pool.take()), asyncio.ensure_future(pool.take())
        await asyncio.sleep(0)
        pool.give(connection)  # the first one's from now on
        first.cancel()

        assert connection is await asyncio.wait_for(second, 5)
        assert first.cancelled()

    asyncio.run(check())


def test_a_wait_ends_and_costs_no_connection() -> None:
    async def check() -> None:
        pool = pool_of(1, 0.01)
        connection = await pool.take()
        with pytest.raises(TimeoutError):
            await pool.take()
        pool.give(connection)

        assert connection is await pool.take()

    asyncio.run(check())


def test_closing_disconnects_what_is_free_and_the_rest_when_it_comes_back() -> None:
    async def check() -> None:
        pool = pool_of(2)
        used, free = await pool.take(), await pool.take()
        pool.give(free)
        await pool.close()
        assert (True, False) == (free.is_closed, used.is_closed)
        pool.give(used)
        await pool.close()

        assert used.is_closed

    asyncio.run(check())


def test_a_close_that_is_cancelled_has_let_go_of_every_free_connection() -> None:
    class Slow(Connection):
        async def close(self) -> None:
            self.abort()
            await asyncio.Event().wait()

    async def check() -> None:
        pool: Any = Pool(Slow, 3, 30.0)  # type: ignore[arg-type]  # as much of a connection as a pool needs
        connections = [await pool.take() for _ in range(3)]
        for connection in connections:
            pool.give(connection)
        closing = asyncio.ensure_future(pool.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])

        assert [True] * 3 == [connection.is_closed for connection in connections]

    asyncio.run(check())
