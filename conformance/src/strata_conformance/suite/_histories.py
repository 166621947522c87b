"""Histories of states to store as deltas and blobs, and what is done with them."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs

from strata_conformance._samples import BASE, checkpoint, spelled
from strata_conformance.suite._base import OpenStore, Store
from strata_core.capabilities import Capability
from strata_core.options import Deltas, Offload
from strata_core.ports import BlobStore
from strata_core.records import CheckpointStatus, ThreadState

__all__ = ["BIG", "LyingBlobs", "WaitingBlobs", "history_of", "race", "reloads", "writes_and_reloads"]

BIG = "x" * 300
VALUES: list[Callable[[random.Random], Any]] = [
    lambda r: r.randrange(5),
    lambda r: r.choice([0, 1, 0.0, 1.0, -0.0, True, False, None, "", "1", [], {}]),
    lambda r: [r.randrange(3) for _ in range(r.randrange(4))],
    lambda r: {r.choice("ab"): r.choice([1, 1.0, True, BIG])},
    lambda r: BIG + str(r.randrange(3)),
    lambda r: [BIG, {"deep": BIG + str(r.randrange(2))}],
]
KEYS = ["a", "b", "c", "d", "", "base", "set", "unset", "whole", "blobs", "\u00e9"]


def history_of(seed: int, length: int) -> list[tuple[CheckpointStatus, dict[str, Any]]]:
    """Return states that grow, shrink, change, change back and change their order."""
    rng = random.Random(seed)
    state: dict[str, Any] = {"a": 1}
    history: list[tuple[CheckpointStatus, dict[str, Any]]] = []
    for _ in range(length):
        for _ in range(rng.randrange(3)):
            key = rng.choice(KEYS)
            if rng.random() < 0.3:
                state.pop(key, None)
            else:
                state[key] = rng.choice(VALUES)(rng)
        if rng.random() < 0.1:
            items = list(state.items())
            rng.shuffle(items)
            state = dict(items)
        if history and rng.random() < 0.1:
            state = dict(rng.choice(history)[1])
        status = rng.choice(list(CheckpointStatus)) if rng.random() < 0.1 else CheckpointStatus.RUNNING
        history.append((status, json.loads(json.dumps(state))))
    return history


async def reloads(store: Store, states: list[dict[str, Any]], thread_id: str = "t") -> None:
    for sequence, state in enumerate(states):
        entry = await store.load(thread_id, at=sequence)
        assert entry is not None
        assert spelled(state) == spelled(entry.checkpoint.frozen_state), f"#{sequence}"


async def writes_and_reloads(open_store: OpenStore, seed: int, **options: Any) -> None:
    """Save a history from handles that come and go, and reload all of it from handles of any kind."""
    history = history_of(seed, 60)
    rng = random.Random(seed)
    offload = options.get("offload")
    quiet = (
        {} if offload is None or offload.blobs is None else {"offload": attrs.evolve(offload, threshold=sys.maxsize)}
    )
    written = 0
    while written < len(history):
        async with open_store(**options) as one, open_store(**options) as two, open_store(**quiet) as plain:
            for status, state in history[written : written + 25]:
                handle = rng.choice([one, one, one, one, two, plain]) if rng.random() < 0.3 else one
                assert written == await handle.save(checkpoint(status=status, state=state))
                latest = await rng.choice([one, two, plain]).load("t")

                assert latest is not None
                assert spelled(state) == spelled(latest.checkpoint.frozen_state), f"#{written}"
                written += 1
    async with open_store(**options) as store, open_store(**quiet) as plain:
        for handle in (store, plain):
            await reloads(handle, [state for _, state in history])


async def race(open_store: OpenStore, offload: Offload) -> None:
    """Let two writers, two purgers and a reader work on the same two threads, then purge what is left."""
    options: dict[str, Any] = {"offload": offload}
    async with open_store() as store:
        if Capability.DELTAS in store.capabilities:
            options["deltas"] = Deltas(full_every=4)
    everything = set(ThreadState)
    saved: set[tuple[str, int]] = set()
    async with open_store(**options) as one, open_store(**options) as two:

        async def write(store: Store, name: str) -> None:
            for n in range(40):
                status = CheckpointStatus.COMPLETED if n % 4 == 3 else CheckpointStatus.RUNNING
                saved.add((name, n))
                state = {"big": BIG + str(n % 3), "by": name, "n": n}
                await store.save(checkpoint(f"t{n // 4 % 2}", status, state))

        async def purge(store: Store) -> None:
            for _ in range(40):
                await store.purge(BASE + timedelta(days=1), states={ThreadState.COMPLETED, ThreadState.RUNNING})

        async def read(store: Store) -> None:
            for n in range(120):
                entry = await store.load(f"t{n % 2}")
                if entry is not None:
                    state = entry.checkpoint.frozen_state
                    assert (state["by"], state["n"]) in saved
                    assert BIG + str(state["n"] % 3) == state["big"]
                await asyncio.sleep(0)

        await asyncio.gather(write(one, "one"), write(two, "two"), purge(one), purge(two), read(one), read(two))
        await one.purge(BASE + timedelta(days=1), states=everything)
        for n in range(3):  # at rest now, with values that were there before, and were purged
            state = {"big": BIG + str(n), "n": n}
            for thread, (writer, reader) in (("t0", (one, two)), ("t1", (two, one))):
                sequence = await writer.save(checkpoint(thread, state=state))
                await reader.save(checkpoint(thread, state={"n": "between"}))
                entry = await reader.load(thread, at=sequence)
                assert entry is not None
                assert state == entry.checkpoint.frozen_state
        await one.purge(BASE + timedelta(days=1), states=everything)
        left = [await two.load(thread) for thread in ("t0", "t1")]

    assert [None, None] == left


class WaitingBlobs:
    """A blob store that waits as a network does, and knows what was put into it.

    Args:
        blobs: Keeps the blobs.

    Attributes:
        waiting: Set once a put has begun.
        gate: Puts wait until it is set, when there is one.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._put: set[tuple[str, str]] = set()
        self.waiting = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        self._put.add((thread_id, digest))
        self.waiting.set()
        await (self.gate.wait() if self.gate is not None else asyncio.sleep(0))
        await self._blobs.put(thread_id, digest, content)
        await asyncio.sleep(0)

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        await asyncio.sleep(0)
        return await self._blobs.get(thread_id, digest)

    async def delete_thread(self, thread_id: str) -> None:
        await asyncio.sleep(0)
        await self._blobs.delete_thread(thread_id)
        await asyncio.sleep(0)

    async def left(self) -> list[tuple[str, str]]:
        """Return the blobs that are still there."""
        return [blob for blob in sorted(self._put) if await self.get(*blob) is not None]


class LyingBlobs:
    """A blob store that gives false contents once `lies` is set."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.lies = False

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        await self._blobs.put(thread_id, digest, content)

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        content = await self._blobs.get(thread_id, digest)
        return b'"' + content[2:] if self.lies and content else content

    async def delete_thread(self, thread_id: str) -> None:
        await self._blobs.delete_thread(thread_id)
