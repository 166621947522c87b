"""Planned faults strike where they are planned, once, and do what they say."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from strata_conformance.stores import (
    Fault,
    FaultyBackend,
    FaultyStore,
    RecordingBackend,
    RecordingStore,
    UnfiredFaultError,
)
from strata_core.errors import ConflictError, InvalidInputError, StoreBusyError, StoreUnavailableError
from strata_core.memory import MemoryBackend
from strata_core.options import Deltas
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.rows import Batching
from strata_core.store import RowStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Batched(MemoryBackend):
    """Goes through core's batcher, as a database does."""

    batching = Batching()  # type: ignore[assignment]  # a base that needs none says None


def checkpoint(n: int = 0, thread_id: str = "t") -> Checkpoint:
    return Checkpoint(thread_id, CheckpointStatus.RUNNING, {"n": n}, NOW)


def with_faults(faults: list[Fault], test: Callable[[FaultyStore, RowStore], Coroutine[Any, Any, None]]) -> list[int]:
    """Run a test on a faulty store, and return the numbers that are stored in the end."""

    async def main() -> list[int]:
        async with RowStore(MemoryBackend()) as inner:
            async with FaultyStore(inner, faults) as store:
                await test(store, inner)
            return [entry.checkpoint.frozen_state["n"] for entry in (await inner.get_log("t")).entries]

    return asyncio.run(main())


def test_a_lost_request_is_not_done() -> None:
    """The error says that the outcome is unknown, as a driver's would."""

    async def test(store: FaultyStore, _: RowStore) -> None:
        with pytest.raises(
            StoreUnavailableError, match=r"the request was lost \(planned fault: before save 1\)"
        ) as caught:
            await store.save(checkpoint(0))
        assert caught.value.maybe_written

    assert [] == with_faults([Fault("save")], test)


def test_a_lost_answer_leaves_the_call_done() -> None:
    async def test(store: FaultyStore, _: RowStore) -> None:
        with pytest.raises(StoreUnavailableError, match="the answer was lost") as caught:
            await store.save(checkpoint(0))
        assert caught.value.maybe_written

    assert [0] == with_faults([Fault("save", when="after")], test)


def test_a_save_whose_answer_was_lost_can_be_repeated() -> None:
    """Under its write ID it is recognised; without one it is a second save."""

    async def test(store: FaultyStore, _: RowStore) -> None:
        write_id = os.urandom(8)
        with pytest.raises(StoreUnavailableError):
            await store.save(checkpoint(0), write_id=write_id)
        assert 0 == await store.save(checkpoint(0), write_id=write_id)
        assert 1 == await store.save(checkpoint(0))

    assert [0, 0] == with_faults([Fault("save", 1, "after")], test)


def test_calls_are_counted_by_method() -> None:
    """The second save is the second save, whatever is called between, on any thread, done or not."""

    async def test(store: FaultyStore, _: RowStore) -> None:
        await store.save(checkpoint(0, "other"))
        await store.load("t")
        with pytest.raises(ConflictError):
            await store.save_if_latest(checkpoint(9), 7)
        with pytest.raises(StoreUnavailableError):
            await store.save(checkpoint(1))
        await store.save(checkpoint(2))
        with pytest.raises(StoreUnavailableError):
            await store.load("t")

    assert [1, 2] == with_faults([Fault("load", 2), Fault("save", 2, "after")], test)


def test_each_fault_strikes_once() -> None:
    async def test(store: FaultyStore, _: RowStore) -> None:
        assert [Fault("save", 1), Fault("save", 3)] == list(store.unfired)
        for n in range(5):
            try:
                await store.save(checkpoint(n))
            except StoreUnavailableError:
                continue
        assert [] == list(store.unfired)
        store.verify()

    assert [1, 3, 4] == with_faults([Fault("save", 1), Fault("save", 3)], test)


@pytest.mark.parametrize("error", [StoreBusyError("locked"), LookupError("own"), asyncio.CancelledError()])
@pytest.mark.parametrize(("when", "stored"), [("before", []), ("after", [0])])
def test_a_fault_raises_the_error_that_it_was_given(error: Any, when: Any, stored: list[int]) -> None:
    async def test(store: FaultyStore, _: RowStore) -> None:
        with pytest.raises(type(error)) as caught:
            await store.save(checkpoint(0))
        assert error is caught.value

    assert stored == with_faults([Fault("save", 1, when, error)], test)


def test_an_error_is_an_answer_that_can_be_lost() -> None:
    """It is the cause of what is raised in its place."""

    async def test(store: FaultyStore, _: RowStore) -> None:
        with pytest.raises(StoreUnavailableError) as caught:
            await store.save_if_latest(checkpoint(0), 3)
        assert isinstance(caught.value.__cause__, ConflictError)

    assert [] == with_faults([Fault("save_if_latest", 1, "after")], test)


def test_a_cancelled_call_is_done_and_its_task_cancelled() -> None:
    """It is a cancellation like any other: the task counts it, and can be left to end."""

    async def test(store: FaultyStore, inner: RowStore) -> None:
        task = asyncio.create_task(store.save(checkpoint(0)))
        await asyncio.wait([task])
        assert task.cancelled()
        assert await inner.load("t") is not None
        await store.save(checkpoint(1))

    assert [0, 1] == with_faults([Fault("save", 1, "cancel")], test)


def test_a_cancelled_call_goes_no_further() -> None:
    """What comes after it in its task does not run."""
    reached = False

    async def test(store: FaultyStore, _: RowStore) -> None:
        nonlocal reached

        async def save_twice() -> None:
            nonlocal reached
            await store.save(checkpoint(0))
            reached = True

        (outcome,) = await asyncio.gather(asyncio.create_task(save_twice()), return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)

    assert [0] == with_faults([Fault("save", 1, "cancel")], test)
    assert not reached


def test_faults_that_never_strike_fail_the_test() -> None:
    """Leaving the context names them."""

    async def test(store: FaultyStore, _: RowStore) -> None:
        await store.save(checkpoint(0))

    with pytest.raises(UnfiredFaultError, match="never struck: after save 2, cancel purge 1") as caught:
        with_faults([Fault("save", 2, "after"), Fault("purge", 1, "cancel")], test)

    assert (Fault("save", 2, "after"), Fault("purge", 1, "cancel")) == caught.value.faults


def test_an_error_of_the_test_itself_comes_first() -> None:
    """A test that failed early says why, not which faults it did not come to."""

    async def test(store: FaultyStore, _: RowStore) -> None:
        raise LookupError("of the test")

    with pytest.raises(LookupError, match="of the test"):
        with_faults([Fault("save")], test)


@pytest.mark.parametrize(
    ("faults", "argument"),
    [
        ([Fault("saev")], r"faults\[0\].op: 'saev' is none of acquire_lease, "),
        ([Fault("commit")], r"faults\[0\].op"),
        ([Fault("save"), Fault("save", 0)], r"faults\[1\].nth"),
        ([Fault("save", True)], r"faults\[0\].nth"),
        ([Fault("save", 1, "during")], r"faults\[0\].when"),  # type: ignore[arg-type]  # the mistake
        ([Fault("save", 1, "cancel", LookupError())], r"faults\[0\].error"),
        ([Fault("save", 1, "before", LookupError)], r"faults\[0\].error"),  # type: ignore[arg-type]  # the mistake
        ([Fault("save", 2), Fault("save", 2, "after")], r"faults\[1\]: is the second fault at save 2"),
    ],
)
def test_a_fault_that_cannot_strike_is_refused(faults: list[Fault], argument: str) -> None:
    async def main() -> None:
        async with RowStore(MemoryBackend()) as inner:
            FaultyStore(inner, faults)

    with pytest.raises(InvalidInputError, match=argument):
        asyncio.run(main())


@pytest.mark.parametrize("backend_class", [MemoryBackend, Batched])
@pytest.mark.parametrize("when", ["before", "after"])
def test_below_the_store_a_lost_commit_is_made_good(backend_class: type[MemoryBackend], when: Any) -> None:
    """Core sends it again, and a commit that had been done is recognised: the application notices nothing."""

    async def main() -> tuple[list[int], list[str], int]:
        recording = RecordingBackend(backend_class())
        async with (
            FaultyBackend(recording, [Fault("commit", 2, when)]) as backend,
            RowStore(backend, deltas=Deltas()) as store,
        ):
            got = [await store.save(checkpoint(n)) for n in range(3)]
            entries = (await store.get_log("t")).entries
        assert [{"n": n} for n in range(3)] == [entry.checkpoint.frozen_state for entry in entries]
        return got, [call.op for call in recording.calls if call.op == "commit"], len(entries)

    got, commits, stored = asyncio.run(main())

    assert [0, 1, 2] == got
    assert 3 == stored
    assert (3 if when == "before" else 4) == len(commits)


def test_below_the_store_a_cancelled_batch_leaves_the_store_usable() -> None:
    """The batch runs in a task of the store: whoever saved is told that the outcome is unknown, not cancelled."""

    async def main() -> list[int]:
        async with FaultyBackend(Batched(), [Fault("commit", 2, "cancel")]) as backend, RowStore(backend) as store:
            await store.save(checkpoint(0))
            with pytest.raises(StoreUnavailableError) as caught:
                await store.save(checkpoint(1))
            assert caught.value.maybe_written
            await store.save(checkpoint(2))
            return [entry.checkpoint.frozen_state["n"] for entry in (await store.get_log("t")).entries]

    assert [0, 1, 2] == asyncio.run(main())


def test_below_the_store_an_opening_that_fails_closes_the_backend() -> None:
    async def main() -> list[str]:
        recording = RecordingBackend(MemoryBackend())
        async with FaultyBackend(recording, [Fault("open", when="after")]) as backend:
            with pytest.raises(StoreUnavailableError):
                await RowStore(backend).__aenter__()
        return [call.op for call in recording.calls]

    assert ["open", "close"] == asyncio.run(main())


def test_below_the_store_only_its_own_methods_can_fail() -> None:
    with pytest.raises(InvalidInputError, match="none of close, commit, list_heads, open, read, read_blobs, read_head"):
        FaultyBackend(MemoryBackend(), [Fault("save")])


def test_recording_and_faults_can_be_stacked() -> None:
    """Outside, a recorder sees what the application saw; inside, what was done."""

    async def main() -> tuple[list[Any], list[Any]]:
        async with RowStore(MemoryBackend()) as inner:
            done = RecordingStore(inner)
            async with FaultyStore(done, [Fault("acquire_lease", 1, "after")]) as faulty:
                seen = RecordingStore(faulty)
                with pytest.raises(StoreUnavailableError):
                    await seen.acquire_lease("t", owner="o", ttl=timedelta(hours=1))
            return [type(call.error) for call in seen.calls], [call.error for call in done.calls]

    assert ([StoreUnavailableError], [None]) == asyncio.run(main())
