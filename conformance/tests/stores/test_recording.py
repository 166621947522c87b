"""What a recording store records."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from strata_conformance.stores import Call, Fault, FaultyBackend, RecordingBackend, RecordingStore
from strata_core.errors import ConflictError, InvalidInputError, StoreUnavailableError
from strata_core.memory import MemoryBackend
from strata_core.options import Setup
from strata_core.records import Checkpoint, CheckpointStatus, LogEntry
from strata_core.rows import NOTHING, Commit, Committed, Refusal
from strata_core.store import RowStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = b"8 bytes."


def checkpoint(n: int = 0, **state: Any) -> Checkpoint:
    return Checkpoint("t", CheckpointStatus.RUNNING, {"n": n} | state, NOW)


def test_calls_are_recorded_with_arguments_and_outcome() -> None:
    """By name, without those that were left at their default."""

    async def main() -> tuple[list[Call], LogEntry | None]:
        async with RowStore(MemoryBackend()) as inner:
            store = RecordingStore(inner)
            await store.save(checkpoint(0))
            await store.save_if_latest(checkpoint(1), 0, write_id=ID)
            return store.calls, await store.load("t")

    calls, entry = asyncio.run(main())

    assert [
        Call("save", {"checkpoint": checkpoint(0)}, 0),
        Call("save_if_latest", {"checkpoint": checkpoint(1), "expected": 0, "write_id": ID}, 1),
        Call("load", {"thread_id": "t"}, entry),
    ] == calls


def test_a_failed_call_is_recorded_with_its_error() -> None:
    """The error itself is there, and equal to one of the same class and text."""

    async def main() -> tuple[list[Call], BaseException]:
        async with RowStore(MemoryBackend()) as inner:
            store = RecordingStore(inner)
            with pytest.raises(ConflictError) as caught:
                await store.save_if_latest(checkpoint(), 5)
            with pytest.raises(InvalidInputError):
                await store.load("")
            return store.calls, caught.value

    calls, error = asyncio.run(main())

    assert [
        Call(
            "save_if_latest",
            {"checkpoint": checkpoint(), "expected": 5},
            error=ConflictError("t", None, "has no checkpoint"),
        ),
        Call("load", {"thread_id": ""}, error=InvalidInputError("thread_id", "must not be empty")),
    ] == calls
    assert error is calls[0].error


def test_a_cancelled_call_is_recorded() -> None:
    """Its error is the CancelledError."""

    async def main() -> list[Call]:
        async with FaultyBackend(MemoryBackend(), [Fault("read", 1, "cancel")]) as backend, RowStore(backend) as inner:
            store = RecordingStore(inner)
            with pytest.raises(asyncio.CancelledError):
                await store.load("t")
            return store.calls

    assert [Call("load", {"thread_id": "t"}, error=asyncio.CancelledError())] == asyncio.run(main())


def test_what_changes_after_a_call_is_recorded_as_it_was() -> None:
    """A state that goes on changing does not change what was recorded of it."""
    items = [{"sku": "a"}]
    changing = checkpoint(items=items)

    async def main() -> list[Call]:
        async with RowStore(MemoryBackend()) as inner:
            store = RecordingStore(inner)
            await store.save(changing)
            items[0]["sku"] = "b"
            items.append({"sku": "c"})
            return store.calls

    assert [Call("save", {"checkpoint": checkpoint(items=[{"sku": "a"}])}, 0)] == asyncio.run(main())


def test_a_state_that_no_store_takes_is_recorded_all_the_same() -> None:
    """The store refuses it, not the recorder: neither a cycle nor a very deep state is too much."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    async def main() -> list[Call]:
        async with RowStore(MemoryBackend()) as inner:
            store = RecordingStore(inner)
            for value in (cycle, deep, {1, 2}, object()):
                with pytest.raises(InvalidInputError):
                    await store.save(checkpoint(value=value))
            return store.calls

    assert [InvalidInputError] * 4 == [type(call.error) for call in asyncio.run(main())]


def test_calls_are_compared_by_content() -> None:
    """Commits have no equality of their own; recorded ones do."""
    take = Call("commit", {"batch": [Commit("t", ID, after=NOTHING)]}, [Committed(0)])

    assert take == Call("commit", {"batch": (Commit("t", ID, after=NOTHING),)}, (Committed(0),))
    assert take != Call("commit", {"batch": [Commit("t", ID, after=0)]}, [Committed(0)])
    assert take != Call("commit", {"batch": [Commit("t", ID, after=NOTHING)]}, [Committed(1)])
    assert take != Call("commit", {"batch": [Commit("t", ID, after=NOTHING)]}, error=StoreUnavailableError("x"))
    assert Call("x", error=StoreUnavailableError("x")) != Call("x", error=StoreUnavailableError("y"))
    assert Call("x", error=KeyError("x")) != Call("x", error=LookupError("x"))


def test_the_calls_below_the_store_are_recorded() -> None:
    """Each batch with its commits, each answer with its outcomes, as they were at the time."""

    async def main() -> list[Call]:
        backend = RecordingBackend(MemoryBackend())
        async with RowStore(backend) as store:
            await store.save(checkpoint(7), write_id=ID)
            assert await store.acquire_lease("t", owner="ann", ttl=timedelta(hours=1)) is not None
            assert await store.acquire_lease("t", owner="bob", ttl=timedelta(hours=1)) is None
        return backend.calls

    calls = asyncio.run(main())

    assert ["open", "commit", "commit", "commit", "close"] == [call.op for call in calls]
    assert Call("open", {"read_only": False, "setup": Setup.AUTO}) == calls[0]
    (saved,) = calls[1].arguments["batch"]
    assert (ID, b'{"n":7}') == (saved.write_id, saved.row.body)
    assert [0] == [outcome.sequence for outcome in calls[1].outcome]
    (refused,) = calls[3].outcome
    assert (Refusal.HELD, "ann") == (refused.why, refused.head.owner)
