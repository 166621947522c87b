"""Threads can be copied from every store to every store."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from strata_conformance.servers import PostgresServer, ValkeyServer
from strata_conformance.servers.fixtures import postgres_server, valkey_server
from strata_core import Deltas, Offload, open_store
from strata_core.copying import CopyOutcome, ThreadCopy, copy_threads
from strata_core.records import Checkpoint, CheckpointStatus, LogEntry

__all__ = ["postgres_server", "valkey_server"]

AT = datetime(2026, 10, 30, 14, 49, 52, 123456, tzinfo=UTC)
SERVERS = {"postgres": ("postgres_server", "schema"), "valkey": ("valkey_server", "prefix")}
STORES = ["memory", "sqlite", "folder", *SERVERS]
NAMES = ["order:1", "{a}*", "\u00e9" * 256]
Places = Callable[[str], str]


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Places:
    """Return the URL of a fresh storage of a kind."""

    def url(kind: str) -> str:
        name = uuid.uuid4().hex[:12]
        if kind in SERVERS:
            fixture, apart = SERVERS[kind]
            server: PostgresServer | ValkeyServer = request.getfixturevalue(fixture)
            return f"{server.url}?{apart}=copy_{name}"
        return {
            "memory": f"memory://{name}",
            "sqlite": f"sqlite:///{tmp_path}/{name}.db",
            "folder": f"folder:///{tmp_path}/{name}",
        }[kind]

    return url


def log_of(thread_id: str) -> list[Checkpoint]:
    states = [{"text": "\u00e9" * 40_000, "n": n, "big": 2**70, "f": 0.1, "nul": "a\0b"} for n in range(4)]
    return [
        Checkpoint(thread_id, CheckpointStatus.RUNNING, state, AT, next_node="B", metadata={"tenant": "a b"})
        for state in states
    ]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(STORES, STORES)))
def test_a_log_comes_over_whole(place: Places, source: str, target: str) -> None:
    """From any store, with deltas and offload, to any: every record equal, and a second copy writes nothing."""
    old_url, new_url = place(source), place(target)

    async def main() -> tuple[list[ThreadCopy], list[ThreadCopy], dict[str, list[Checkpoint]]]:
        async with (
            open_store(old_url, deltas=Deltas(), offload=Offload()) as old,
            open_store(new_url, deltas=Deltas(), offload=Offload()) as new,
        ):
            for name in NAMES:
                for checkpoint in log_of(name):
                    await old.save(checkpoint)
            first = [found async for found in copy_threads(old, new, NAMES)]
            second = [found async for found in copy_threads(old, new, NAMES)]
            logs: dict[str, list[LogEntry]] = {name: list((await new.get_log(name)).entries) for name in NAMES}
        copies = [[found for found in copies if isinstance(found, ThreadCopy)] for copies in (first, second)]
        return copies[0], copies[1], {name: [entry.checkpoint for entry in log] for name, log in logs.items()}

    first, second, logs = asyncio.run(main())

    assert {name: log_of(name) for name in NAMES} == logs
    assert [(CopyOutcome.COPIED, 4)] * 3 == [(one.outcome, one.written) for one in first]
    assert [(CopyOutcome.UNCHANGED, 0)] * 3 == [(one.outcome, one.written) for one in second]
