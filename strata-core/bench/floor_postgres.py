"""The bare psycopg: one prepared statement a batch, in autocommit, on two connections."""

from __future__ import annotations

from contextlib import AsyncExitStack

import psycopg
from floor import Floor, Step

_TABLES = """
create table heads(thread text primary key, sequence integer, status text);
create table rows(thread text, sequence integer, state text, primary key(thread, sequence))
"""
_WRITERS = 2


async def open_floor(stack: AsyncExitStack, url: str) -> Floor:
    """Return a floor on an empty database."""
    free = []
    for _ in range(_WRITERS):
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0)
        free.append(await stack.enter_async_context(connection))
    await free[0].execute(_TABLES, prepare=False)

    async def write(steps: list[Step]) -> None:
        connection = free.pop()
        values = [value for step in sorted(steps) for value in step]
        await connection.execute(_statement(len(steps)), values, binary=False)
        free.append(connection)

    return Floor(write, _WRITERS)


def _statement(count: int) -> str:
    items = ",".join(["(%s,%s::int,%s,%s)"] * count)
    return (
        f"with items(thread, sequence, status, state) as (values {items}),"
        " heads as (insert into heads select thread, sequence, status from items"
        " on conflict(thread) do update set sequence=excluded.sequence, status=excluded.status)"
        " insert into rows select thread, sequence, state from items"
    )
