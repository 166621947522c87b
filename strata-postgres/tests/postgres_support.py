"""What the tests and the programs they start have in common."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg

from strata_core.options import Setup
from strata_core.rows import ANY, Commit, Drop, Extend, NewRow, Take
from strata_postgres import PostgresBackend, PostgresOptions
from strata_postgres._address import Address
from strata_postgres._commit import arguments

TESTS = Path(__file__).parent
EXAMPLE_TIME = 1_793_371_792_000_000
"""2026-10-30T14:49:52Z."""
DIGEST = "sha256:" + "0" * 64


def envelope(thread_id: str, status: str = "running", **more: Any) -> bytes:
    record = {"schema_version": "1.7.0", "thread_id": thread_id, "status": status}
    record["created_at"] = "2026-10-30T14:49:52.000000Z"
    return json.dumps(record | more, ensure_ascii=False, separators=(",", ":")).encode()


def row(
    thread_id: str,
    state: str = "running",
    *,
    updated: int = EXAMPLE_TIME,
    body: bytes = b'{"step":1}',
    version: str = "1.7.0",
    whole: bool = True,
    metadata: Mapping[str, str] | None = None,
    **more: Any,
) -> NewRow:
    return NewRow(
        version, whole, envelope(thread_id, state), body, state, state, updated, metadata=metadata or {}, **more
    )


def save(
    thread_id: str,
    state: str = "running",
    *,
    write_id: bytes | None = None,
    after: int = ANY,
    blobs: tuple[tuple[str, bytes], ...] = (),
    token: int = 0,
    lease: Take | Extend | Drop | None = None,
    **more: Any,
) -> Commit:
    """Return a commit that appends a row."""
    return Commit(
        thread_id,
        write_id or os.urandom(8),
        after=after,
        token=token,
        row=row(thread_id, state, **more),
        blobs=blobs,
        lease=lease,
    )


@asynccontextmanager
async def opened(
    url: str,
    *,
    read_only: bool = False,
    setup: Setup = Setup.AUTO,
    options: PostgresOptions | None = None,
) -> AsyncGenerator[PostgresBackend]:
    backend = PostgresBackend(url, options=options)
    await backend.open(read_only=read_only, setup=setup)
    try:
        yield backend
    finally:
        await backend.close()


def with_backend(url: str, use: Callable[[PostgresBackend], Awaitable[Any]], **more: Any) -> Any:
    """Run `use` on an open backend, in a loop of its own."""

    async def go() -> Any:
        async with opened(url, **more) as backend:
            return await use(backend)

    return asyncio.run(go())


def query(url: str, statement: str, *values: object) -> list[Any]:
    """Ask a store's database as any client does that has its schema in the search path."""
    address = Address.of(url, PostgresOptions())
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{address.options.schema}"'.encode())
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []


def called(connection: psycopg.Connection[Any], function: str, commit: Commit) -> None:
    """Commit in a transaction of one's own."""
    numbers, texts, contents = arguments([commit])[1]
    statement = f"SELECT {function}(%s::bigint[], %s::text[], %b::bytea)".encode()
    connection.execute(statement, (numbers.decode(), texts.decode(), contents))


def start(program: str, *arguments: object, **more: Any) -> "subprocess.Popen[str]":
    """Start one of the programs beside the tests; warnings are errors in it."""
    command = [sys.executable, "-W", "error", str(TESTS / "programs" / program), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **more)


def finish(process: "subprocess.Popen[str]", seconds: float = 60) -> str:
    """Wait for a program, require that it did well and said nothing on stderr, and return what it printed."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()

    assert (0, "") == (process.returncode, err)
    return out


def contents(url: str) -> dict[str, object]:
    """What a schema holds: every relation and function by name, a table with all its rows."""
    schema = Address.of(url, PostgresOptions()).options.schema
    found: dict[str, object] = dict(
        query(
            url,
            "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = to_regnamespace(%s) UNION ALL "
            "SELECT proname, 'function' FROM pg_proc WHERE pronamespace = to_regnamespace(%s)",
            schema,
            schema,
        )
    )
    for name, kind in found.items():
        if kind == "r":
            found[name] = query(url, f"SELECT t::text FROM {name} AS t ORDER BY 1")
    return found | {"schema": query(url, "SELECT 1 FROM pg_namespace WHERE nspname = %s", schema)}


def golden_version_1(url: str) -> str:
    """Make the store of schema version 1 in the schema that the URL names."""
    address = Address.of(url, PostgresOptions())
    text = (TESTS / "golden" / "version-1.sql").read_text().replace('"SCHEMA"', f'"{address.options.schema}"')
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(text.encode())
    return url
