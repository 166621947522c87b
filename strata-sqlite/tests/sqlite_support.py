"""What the tests and the programs they start have in common."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.options import Setup
from strata_core.rows import ANY, Commit, Drop, Extend, NewRow, Take
from strata_sqlite import SqliteBackend, SqliteOptions

TESTS = Path(__file__).parent
EXAMPLE_TIME = 1_793_371_792_000_000
"""2026-10-30T14:49:52Z."""


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
    path: Path | str,
    *,
    read_only: bool = False,
    setup: Setup = Setup.AUTO,
    clock: Clock = SYSTEM_CLOCK,
    options: SqliteOptions | None = None,
) -> AsyncGenerator[SqliteBackend]:
    backend = SqliteBackend(path, options=options, clock=clock)
    await backend.open(read_only=read_only, setup=setup)
    try:
        yield backend
    finally:
        await backend.close()


def with_backend(path: Path | str, use: Callable[[SqliteBackend], Awaitable[Any]], **more: Any) -> Any:
    """Run `use` on an open backend, in a loop of its own."""

    async def go() -> Any:
        async with opened(path, **more) as backend:
            return await use(backend)

    return asyncio.run(go())


def writer_of(backend: SqliteBackend) -> sqlite3.Connection:
    assert backend._writer is not None
    assert backend._writer._connection is not None
    return backend._writer._connection


@contextmanager
def traced(driver: sqlite3.Connection) -> Generator[list[str]]:
    """Collect the statements that a connection runs."""
    statements: list[str] = []
    driver.set_trace_callback(statements.append)
    try:
        yield statements
    finally:
        driver.set_trace_callback(None)


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


def golden_version_1(path: Path) -> Path:
    """Make the database of schema version 1."""
    db = sqlite3.connect(path)
    db.executescript((TESTS / "golden" / "version-1.sql").read_text())
    db.close()
    return path


def query(path: Path, statement: str, *values: object) -> list[Any]:
    """Ask a database as any SQLite client does."""
    db = sqlite3.connect(path)
    try:
        return db.execute(statement, values).fetchall()
    finally:
        db.close()


class FailingCommit:
    """Passes everything to a connection, and fails at COMMIT, before or after it is done."""

    def __init__(self, driver: sqlite3.Connection, *, done: bool) -> None:
        self.driver = driver
        self.done = done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT":
            if self.done:
                self.driver.execute(statement)
            raise sqlite3.OperationalError("disk I/O error")
        return self.driver.execute(statement, *values)
