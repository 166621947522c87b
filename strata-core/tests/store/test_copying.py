"""A copied thread is in the target what it is in the source, or it is told why not."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Self, cast

import attrs
import pytest

from strata_core.copying import CopyOutcome, CopyRefused, ThreadCopy, copy_thread, copy_threads
from strata_core.errors import (
    ConflictError,
    CorruptCheckpointError,
    InvalidInputError,
    LeaseHeldError,
    StoreUnavailableError,
)
from strata_core.memory import MemoryBackend
from strata_core.options import Deltas, Offload
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    GraphIdentity,
    HumanDecision,
    ThreadState,
    Wait,
    WaitKind,
)
from strata_core.rows import Commit, Committed, NewRow, Refused
from strata_core.store import RowStore
from strata_core.testing import FakeClock

AT = datetime(2026, 10, 30, 14, 49, 52, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def log_of(
    thread_id: str, length: int = 5, *, last: CheckpointStatus = CheckpointStatus.INTERRUPTED
) -> list[Checkpoint]:
    """Return the checkpoints of a thread: running ones with a large value that stays, and a last one."""
    fields: dict[str, Any] = {
        "created_at": AT,
        "metadata": {"tenant": "acme", "strata.visit": "1"},
        "graph": GraphIdentity("wire", "2"),
        "decision": HumanDecision("Review", True, "jdoe", AT, {"amount": 4150.25}),
    }
    running = [
        Checkpoint(
            thread_id, CheckpointStatus.RUNNING, {"text": "x" * 70_000, "n": n, "f": 1.0}, next_node="B", **fields
        )
        for n in range(length - 1)
    ]
    wait = (
        Wait(WaitKind.PERSON, due_at=AT + MINUTE, on_timeout="Late") if last is CheckpointStatus.INTERRUPTED else None
    )
    return [*running, Checkpoint(thread_id, last, {"text": "x" * 70_000, "n": -1}, wait=wait, **fields)]


async def fill(store: RowStore, checkpoints: Sequence[Checkpoint]) -> None:
    for checkpoint in checkpoints:
        await store.save(checkpoint)


async def logged(store: RowStore, thread_id: str = "t") -> list[Checkpoint]:
    return [entry.checkpoint for entry in (await store.get_log(thread_id, limit=1000)).entries]


class Pair:
    """Two stores in memory."""

    def __init__(self, target: MemoryBackend | None = None, **options: Any) -> None:
        self.clock = FakeClock()
        self.old = RowStore(MemoryBackend(self.clock), deltas=Deltas())
        self.backend = target or MemoryBackend(self.clock)
        self.new = RowStore(self.backend, **options)

    async def __aenter__(self) -> Self:
        await self.old.__aenter__()
        await self.new.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.new.__aexit__(None, None, None)
        await self.old.__aexit__(None, None, None)

    async def copy(self, thread_id: str = "t", **changes: Any) -> ThreadCopy:
        return await copy_thread(self.old, self.new, thread_id, clock=self.clock, **changes)


class Fails(MemoryBackend):
    """Stops taking rows after some."""

    left = 1000

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        if any(commit.row is not None for commit in batch):
            self.left -= 1
            if self.left < 0:
                raise StoreUnavailableError("out of order")
        return await super().commit(batch)


@pytest.mark.parametrize(
    "options",
    [{}, {"deltas": Deltas()}, {"offload": Offload()}, {"deltas": Deltas(), "offload": Offload()}],
    ids=["plain", "deltas", "offload", "both"],
)
def test_the_whole_log_is_copied_in_the_form_of_the_target(options: dict[str, Any]) -> None:
    """Record by record equal, whichever way either side stores them; told with counts, a hash and the state."""

    async def main() -> tuple[ThreadCopy, list[Checkpoint], bool]:
        async with Pair(**options) as pair:
            await fill(pair.old, log_of("t"))
            done = await pair.copy()
            return done, await logged(pair.new), await pair.new.live_lease("t") is None

    done, found, is_free = asyncio.run(main())

    assert log_of("t") == found
    assert ("t", CopyOutcome.COPIED, 5, 5, ThreadState.INTERRUPTED) == (
        done.thread_id, done.outcome, done.checkpoints, done.written, done.state,
    )  # fmt: skip
    assert done.digest.startswith("sha256:")
    assert is_free


def test_the_hash_tells_logs_apart_and_not_stores() -> None:
    """One log has one hash wherever it is; another value, even of another type, gives another one."""

    async def digest(change: Any, **options: Any) -> str:
        async with Pair(**options) as pair:
            first, *rest = log_of("t")
            await fill(pair.old, [attrs.evolve(first, frozen_state={"text": "", "n": change}), *rest])
            return (await pair.copy()).digest

    async def main() -> list[str]:
        return [
            await digest(1),
            await digest(1, deltas=Deltas(), offload=Offload()),
            await digest(1.0),
            await digest("1"),
        ]

    one, same, *others = asyncio.run(main())

    assert one == same
    assert 3 == len({one, *others})


def test_a_thread_that_is_there_already_is_left_as_it_is() -> None:
    """Copied once more, nothing is written."""

    async def main() -> tuple[ThreadCopy, ThreadCopy, int]:
        async with Pair(Fails()) as pair:
            await fill(pair.old, log_of("t"))
            first = await pair.copy()
            pair.backend.left = 0  # type: ignore[attr-defined]
            return first, await pair.copy(), len(await logged(pair.new))

    first, second, length = asyncio.run(main())

    assert attrs.evolve(first, outcome=CopyOutcome.UNCHANGED, written=0) == second
    assert 5 == length


@pytest.mark.parametrize("rows", range(1, 5))
def test_an_interrupted_copy_goes_on_where_it_ended(rows: int) -> None:
    """Whatever checkpoint it reached, the rest is written, and no checkpoint twice."""

    async def main() -> tuple[ThreadCopy, list[Checkpoint]]:
        async with Pair(Fails()) as pair:
            await fill(pair.old, log_of("t"))
            pair.backend.left = rows  # type: ignore[attr-defined]
            with pytest.raises(StoreUnavailableError):
                await pair.copy()

            assert rows == len(await logged(pair.new))
            pair.backend.left = 1000  # type: ignore[attr-defined]
            return await pair.copy(), await logged(pair.new)

    done, found = asyncio.run(main())

    assert log_of("t") == found
    assert (CopyOutcome.CONTINUED, 5, 5 - rows) == (done.outcome, done.checkpoints, done.written)


@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_a_copy_that_is_cancelled_anywhere_can_be_repeated(turns: int) -> None:
    """The lease is given back, the beginning that was written is a beginning, and a second copy finishes it."""

    async def main() -> tuple[bool, list[Checkpoint], list[Checkpoint]]:
        async with Pair() as pair:
            await fill(pair.old, log_of("t"))
            task = asyncio.create_task(pair.copy())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            begun, is_free = await logged(pair.new), await pair.new.live_lease("t") is None
            await pair.copy()
            return is_free, begun, await logged(pair.new)

    is_free, begun, found = asyncio.run(main())

    assert is_free
    assert begun == log_of("t")[: len(begun)]
    assert log_of("t") == found


def test_another_thread_of_the_same_id_is_refused_untouched() -> None:
    """Neither a log that differs, nor one that is longer, is written to."""

    async def main(there: list[Checkpoint]) -> list[Checkpoint]:
        async with Pair() as pair:
            await fill(pair.old, log_of("t"))
            await fill(pair.new, there)
            with pytest.raises(ConflictError, match="exists in the target with another log"):
                await pair.copy()
            return await logged(pair.new)

    other = [attrs.evolve(log_of("t")[0], metadata={})]
    longer = [*log_of("t"), log_of("t")[-1]]

    assert other == asyncio.run(main(other))
    assert longer == asyncio.run(main(longer))


def test_a_thread_that_runs_is_refused() -> None:
    """A live lease on either side tells that somebody writes to it: it is named, and nothing is written."""

    async def main(side: str) -> tuple[str, int]:
        async with Pair() as pair:
            await fill(pair.old, log_of("t"))
            store = pair.old if side == "old" else pair.new
            await store.acquire_lease("t", owner="worker-7", ttl=MINUTE)
            with pytest.raises(LeaseHeldError) as caught:
                await pair.copy()
            return caught.value.owner, len(await logged(pair.new))

    assert ("worker-7", 0) == asyncio.run(main("old"))
    assert ("worker-7", 0) == asyncio.run(main("new"))


def test_a_thread_that_nobody_has_is_refused() -> None:
    """By the name of the argument."""

    async def main() -> None:
        async with Pair() as pair:
            await pair.copy("nobody")

    with pytest.raises(InvalidInputError, match="the source has no thread 'nobody'") as caught:
        asyncio.run(main())

    assert "thread_id" == caught.value.argument


def test_a_source_that_writes_meanwhile_is_told() -> None:
    """The copy is a beginning then, and the next one finishes it."""

    class Meanwhile(MemoryBackend):
        more: Callable[[], Awaitable[object]] | None = None

        async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
            more, self.more = self.more, None
            if more is not None:
                await more()
            return await super().commit(batch)

    async def main() -> list[Checkpoint]:
        backend = Meanwhile()
        async with Pair(backend) as pair:
            await fill(pair.old, log_of("t"))
            backend.more = functools.partial(pair.old.save, log_of("t")[0])
            with pytest.raises(ConflictError, match="was written to in the source while it was copied"):
                await pair.copy()
            done = await pair.copy()

            assert (CopyOutcome.CONTINUED, 1) == (done.outcome, done.written)
            return await logged(pair.new)

    assert [*log_of("t"), log_of("t")[0]] == asyncio.run(main())


def test_a_target_that_stores_something_else_is_found_out() -> None:
    """What was written is read back and compared; the sequence alone would tell nothing."""

    class Rounds(MemoryBackend):
        def _other(self, commit: Commit, row: NewRow) -> Commit:
            return attrs.evolve(commit, row=attrs.evolve(row, body=row.body.replace(b'"n":2', b'"n":3')))

        async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
            changed = [commit if commit.row is None else self._other(commit, commit.row) for commit in batch]
            return await super().commit(changed)

    async def main() -> None:
        async with Pair(Rounds()) as pair:
            await fill(pair.old, log_of("t"))
            await pair.copy()

    with pytest.raises(CorruptCheckpointError, match="is not in the target what was copied there"):
        asyncio.run(main())


def test_the_lease_is_renewed_while_a_long_log_is_copied() -> None:
    """However long it takes in all, nobody else can take the thread meanwhile, and it is free at once afterwards."""

    async def main() -> tuple[int, bool]:
        async with Pair() as pair:
            await fill(pair.old, log_of("t", 120))
            # A lease of a minute would be lost after the third of these steps, and with it the copy.
            done = await pair.copy(on_checkpoint=functools.partial(pair.clock.advance, timedelta(seconds=25)))
            return done.written, await pair.new.live_lease("t") is None

    assert (120, True) == asyncio.run(main())


def test_many_threads_are_copied_and_those_that_cannot_be_are_told() -> None:
    """One that is refused does not keep the others back; an ID that is named twice is copied once."""

    async def main() -> list[ThreadCopy | CopyRefused]:
        async with Pair() as pair:
            names = [f"t{n}" for n in range(20)]
            for name in names:
                await fill(pair.old, log_of(name, 3, last=CheckpointStatus.COMPLETED))
            await fill(pair.new, [attrs.evolve(log_of("t7")[0], metadata={})])
            wanted = [*names, "t0", "nobody"]
            async with aclosing(copy_threads(pair.old, pair.new, wanted, concurrency=4, clock=pair.clock)) as copies:
                return [found async for found in copies]

    found = asyncio.run(main())
    refused = {one.thread_id: type(one.error) for one in found if isinstance(one, CopyRefused)}

    assert {"t7": ConflictError, "nobody": InvalidInputError} == refused
    assert 21 == len(found)
    assert {3} == {one.written for one in found if isinstance(one, ThreadCopy)}


def test_leaving_the_iteration_early_leaves_no_lease_behind() -> None:
    """What is under way is cancelled and awaited."""

    async def main() -> int:
        async with Pair() as pair:
            for n in range(6):
                await fill(pair.old, log_of(f"t{n}", 3))
            async with aclosing(copy_threads(pair.old, pair.new, [f"t{n}" for n in range(6)], concurrency=3)) as copies:
                async for _ in copies:
                    break
            return sum([await pair.new.live_lease(f"t{n}") is not None for n in range(6)])

    assert 0 == asyncio.run(main())


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, None])
def test_a_concurrency_that_is_none_is_refused(concurrency: Any) -> None:
    async def main() -> None:
        async with Pair() as pair:
            async for _ in copy_threads(pair.old, pair.new, [], concurrency=concurrency):
                pass

    with pytest.raises(InvalidInputError, match="concurrency"):
        asyncio.run(main())


def test_a_target_that_is_the_source_is_refused_however_it_was_opened() -> None:
    """Else its threads would be told to be copied, and be ended, as they say of those that wait, in the only store."""

    async def main() -> tuple[list[str], int, bool]:
        clock = FakeClock()
        backend = MemoryBackend(clock)
        async with RowStore(backend) as store:
            await fill(store, log_of("t", 3))
            await fill(store, log_of("u", 2, last=CheckpointStatus.COMPLETED))
            found = [str(one.error) async for one in copy_threads(store, store, ["t", "u"]) if type(one) is CopyRefused]
            return found, len(await logged(store)), await store.live_lease("t") is None

    refused, length, free = asyncio.run(main())

    assert 2 == len(refused)
    assert all("target: is the source itself" in text for text in refused)
    assert (3, True) == (length, free)


def test_a_store_that_is_a_file_copy_of_the_source_is_another() -> None:
    """The same revisions do not make it the same store."""

    async def main() -> ThreadCopy:
        async with Pair() as pair:
            await fill(pair.old, log_of("t", 3))
            here = await pair.old.load("t")

            class Clone:
                def __getattr__(self, name: str) -> Any:
                    return getattr(pair.new, name)

                async def load(self, thread_id: str) -> Any:
                    there = await pair.new.load(thread_id)
                    assert there is not None
                    assert here is not None
                    return attrs.evolve(there, revision=here.revision)

            await pair.copy()
            clone: Any = Clone()
            return await copy_thread(pair.old, clone, "t", clock=pair.clock)

    assert CopyOutcome.UNCHANGED is asyncio.run(main()).outcome


class Breaks(Fails):
    """Answers nothing at all once it has stopped taking rows."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        if self.left < 0:
            raise StoreUnavailableError("gone for good")
        return await super().commit(batch)


def test_what_broke_a_copy_is_told_and_not_that_its_lease_could_not_be_given_back() -> None:
    async def main() -> None:
        clock = FakeClock()
        backend = Breaks(clock)
        async with Pair(backend) as pair:
            await fill(pair.old, log_of("t"))

            def spoil() -> None:
                backend.left = -1
                raise CorruptCheckpointError("t", 1, "was spoiled")

            await pair.copy(on_checkpoint=spoil)

    with pytest.raises(CorruptCheckpointError, match="was spoiled"):
        asyncio.run(main())


def test_a_store_that_goes_down_under_many_copies_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs nothing about the errors that nobody asked for."""

    async def main() -> None:
        clock = FakeClock()
        backend = Breaks(clock)
        backend.left = -1
        async with Pair(backend) as pair:
            names = [f"t{n}" for n in range(8)]
            for name in names:
                await fill(pair.old, log_of(name, 2))
            with pytest.raises(StoreUnavailableError, match="gone for good"):
                async for _ in copy_threads(pair.old, pair.new, names, clock=pair.clock):
                    pass

    asyncio.run(main())
    gc.collect()

    assert [] == [record.getMessage() for record in caplog.records if record.name == "asyncio"]


def test_a_second_cancellation_leaves_no_copy_running_behind_its_caller() -> None:
    async def main() -> int:
        async with Pair() as pair:
            names = [f"t{n}" for n in range(6)]
            for name in names:
                await fill(pair.old, log_of(name, 3))
            saves = asyncio.Event()

            class Slow:
                def __getattr__(self, name: str) -> Any:
                    return getattr(pair.new, name)

                async def save_under_lease(self, *_: Any) -> None:
                    saves.set()
                    await asyncio.Event().wait()

                async def release_lease(self, lease: Any) -> None:
                    for _ in range(20):
                        await asyncio.sleep(0)
                    await pair.new.release_lease(lease)

            slow: Any = Slow()

            async def copy() -> None:
                async for _ in copy_threads(pair.old, slow, names, concurrency=6, clock=pair.clock):
                    pass

            task = asyncio.create_task(copy())
            await saves.wait()
            task.cancel()
            for _ in range(4):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return sum("_outcome" in repr(left) for left in asyncio.all_tasks())

    assert 0 == asyncio.run(main())


def test_one_id_is_not_taken_for_its_letters() -> None:
    async def main() -> None:
        async with Pair() as pair:
            async for _ in copy_threads(pair.old, pair.new, "abc"):
                pass

    with pytest.raises(InvalidInputError, match="thread_ids: must be several IDs"):
        asyncio.run(main())


@pytest.mark.parametrize("wrong", [None, 5, b"t", ["t"]])
def test_an_id_that_is_none_is_refused_before_anything_is_copied(wrong: Any) -> None:
    """Nobody takes the threads behind it for copied."""

    async def main() -> bool:
        async with Pair() as pair:
            await fill(pair.old, log_of("t0"))
            with pytest.raises(InvalidInputError, match=r"^thread_ids\[1\]: must be a str, not "):
                async for _ in copy_threads(pair.old, pair.new, ["t0", wrong, "t1"]):
                    pass
            return await pair.new.load("t0") is None

    assert asyncio.run(main())


@pytest.mark.parametrize("wrong", [None, 5])
def test_ids_that_cannot_be_gone_through_are_refused(wrong: Any) -> None:
    async def main() -> None:
        async with Pair() as pair:
            async for _ in copy_threads(pair.old, pair.new, wrong):
                pass

    with pytest.raises(InvalidInputError, match="thread_ids: must be several IDs, such as a list, and is one"):
        asyncio.run(main())


def test_a_thread_of_a_newer_format_is_told_and_the_others_copied() -> None:
    async def main() -> dict[str, str]:
        async with Pair() as pair:
            for name in ("a", "b", "c"):
                await fill(pair.old, log_of(name, 3))
            rows = cast(MemoryBackend, pair.old._link.backend)._rows["b"]
            rows[:] = [
                attrs.evolve(row, version="1.99.0", envelope=row.envelope.replace(row.version.encode(), b"1.99.0"))
                for row in rows
            ]
            copies = copy_threads(pair.old, pair.new, ["a", "b", "c"])
            return {one.thread_id: type(getattr(one, "error", one)).__name__ async for one in copies}

    assert {"a": "ThreadCopy", "b": "SchemaVersionError", "c": "ThreadCopy"} == asyncio.run(main())
