"""What the tests and the programs they start have in common."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs

from strata_core.options import Setup
from strata_core.rows import ANY, Commit, Drop, Extend, NewRow, Take
from strata_redis import RedisBackend, RedisOptions
from strata_redis._keys import Keys

TESTS = Path(__file__).parent
EXAMPLE_TIME = 1_793_371_792_000_000
"""2026-10-30T14:49:52Z."""
DIGEST = "sha256:" + "0" * 64
HOUR = 3_600_000_000
"""Microseconds."""


class Commanded(Protocol):
    """A server, as far as the tests talk to it themselves."""

    def command(self, *arguments: str | int | bytes) -> Any: ...


@attrs.frozen
class Place:
    """Where a test may keep a store.

    Attributes:
        servers: All that hold a part of it.
        server_url: How a client connects.
        prefix: Of the store's keys.
    """

    servers: Sequence[Commanded]
    server_url: str
    prefix: str

    @property
    def url(self) -> str:
        """The URL of the store."""
        return f"{self.server_url}{'&' if '?' in self.server_url else '?'}prefix={self.prefix}"

    def backend(self, **options: Any) -> RedisBackend:
        """Return a backend, not yet opened."""
        return RedisBackend(self.url, options=RedisOptions(**options))

    @property
    def keys(self) -> Keys:
        """The keys of a store with the usual number of buckets."""
        return Keys(self.prefix, 16)

    def _found(self) -> list[tuple[Commanded, bytes]]:
        own = re.compile(rf"\{{{re.escape(self.prefix)}:(\d+|meta)\}}".encode())
        return [
            (server, key)
            for server in self.servers
            for key in server.command("KEYS", "*")
            if own.match(key) is not None
        ]

    def names(self) -> list[str]:
        """Return every key under the prefix."""
        return sorted(key.decode() for _, key in self._found())

    def footprint(self) -> dict[str, object]:
        """Return every key under the prefix with its content, and whether it will expire."""
        return {
            key.decode(): (_content(server, key), server.command("PTTL", key) >= 0) for server, key in self._found()
        }

    def index(self) -> list[bytes]:
        """Return all that the indexes hold, of one server."""
        (server,) = self.servers
        return [member for tag in self.keys.tags for member in server.command("ZRANGE", tag + b"index", 0, -1)]

    def thread_key(self, thread_id: str) -> bytes:
        """Return the key of a thread."""
        thread = thread_id.encode()
        return self.keys.thread(self.keys.bucket(thread), thread)

    def tag_of(self, thread_id: str) -> bytes:
        """Return what the keys of a thread's bucket begin with."""
        return self.keys.tags[self.keys.bucket(thread_id.encode())]


def _content(server: Commanded, key: bytes) -> object:
    """Return what a key holds, in an order that is always the same."""
    kind = server.command("TYPE", key)
    if kind == b"hash":
        fields = server.command("HGETALL", key)
        return dict(zip(fields[::2], fields[1::2], strict=True))
    if kind == b"zset":
        return server.command("ZRANGE", key, 0, -1, "WITHSCORES")
    return server.command("DUMP", key)


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
    blobs: Sequence[tuple[str, bytes]] = (),
    token: int = 0,
    external: bool = False,
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
        external=external,
        lease=lease,
    )


def erase(thread_id: str, **more: Any) -> Commit:
    """Return a commit that erases a thread."""
    return Commit(thread_id, os.urandom(8), erase=True, **more)


@asynccontextmanager
async def opened(
    place: Place | str, *, read_only: bool = False, setup: Setup = Setup.AUTO, **options: Any
) -> AsyncGenerator[RedisBackend]:
    url = place if isinstance(place, str) else place.url
    backend = RedisBackend(url, options=RedisOptions(**options))
    await backend.open(read_only=read_only, setup=setup)
    try:
        yield backend
    finally:
        await backend.close()


def with_backend(place: Place | str, use: Callable[[RedisBackend], Awaitable[Any]], **more: Any) -> Any:
    """Run `use` on an open backend, in a loop of its own."""

    async def go() -> Any:
        async with opened(place, **more) as backend:
            return await use(backend)

    return asyncio.run(go())


def start(program: str, *arguments: object, **more: Any) -> "subprocess.Popen[str]":
    """Start one of the programs beside the tests; warnings are errors in it."""
    command = [sys.executable, "-W", "error", str(TESTS / "programs" / program), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **more)


def finish(process: "subprocess.Popen[str]", seconds: float = 60) -> str:
    """Wait for a program, require that it did well, and return what it printed."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()

    assert 0 == process.returncode, err
    return out
