"""External blobs and rows together: nothing reachable is ever half written or half deleted."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from strata_core.clock import micros
from strata_core.errors import ConflictError, CorruptCheckpointError, StoreBusyError, StoreUnavailableError
from strata_core.memory import MemoryBackend
from strata_core.options import Deltas, Offload
from strata_core.rows import NOTHING, Commit, Committed, HeadQuery, Take
from strata_core.store import RowStore, _holding

BIG = "x" * 3000


class Blobs:
    """An external store in memory that suspends, can fail, and can let others in between."""

    def __init__(self) -> None:
        self.content: dict[tuple[str, str], bytes] = {}
        self.before_put = self.after_put = self.before_delete = None
        self.puts = 0

    async def put(self, thread_id, digest, content):
        self.puts += 1
        if self.before_put:
            await self.before_put()
        await asyncio.sleep(0)
        self.content[thread_id, digest] = content
        if self.after_put:
            hook, self.after_put = self.after_put, None
            await hook()

    async def get(self, thread_id, digest):
        await asyncio.sleep(0)
        return self.content.get((thread_id, digest))

    async def delete_thread(self, thread_id):
        if self.before_delete:
            await self.before_delete()
        await asyncio.sleep(0)
        for key in [key for key in self.content if key[0] == thread_id]:
            del self.content[key]


@pytest.fixture
def blobs():
    return Blobs()


@pytest.fixture
def options(blobs):
    return {"deltas": Deltas(), "offload": Offload(threshold=1000, blobs=blobs)}


def test_a_value_goes_to_the_external_store_once_and_comes_back(memory, blobs, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as store:
            for step in range(5):
                await store.save(checkpoint("t", {"big": BIG, "step": step}))
            return (await store.load("t")).checkpoint.frozen_state

    assert {"big": BIG, "step": 4} == asyncio.run(scenario())
    assert 1 == blobs.puts
    assert {} == memory._blobs


def test_a_purge_between_a_put_and_its_row_costs_the_save_nothing(memory, blobs, options, checkpoint, later):
    async def scenario():
        async with RowStore(memory, **options) as store, RowStore(memory, **options) as other:
            await other.save(checkpoint("t", {"n": 0}, "completed"))

            async def purge():
                assert await other.purge(later) == 1

            blobs.after_put = purge
            sequence = await store.save(checkpoint("t", {"big": BIG}))
            return sequence, (await other.load("t")).checkpoint.frozen_state

    assert (0, {"big": BIG}) == asyncio.run(scenario())


def test_a_new_thread_is_reserved_while_its_first_values_are_put(memory, blobs, options, checkpoint, later):
    seen = []

    async def scenario():
        async with RowStore(memory, **options) as store, RowStore(memory, **options) as other:

            async def look():
                seen.append((await memory.read_head("t")).sequence)
                seen.append(await other.purge(later))
                seen.append(await other.load("t"))
                seen.append((await other.list_threads()).threads)

            blobs.after_put = look
            await store.save(checkpoint("t", {"big": BIG}))
            head = await memory.read_head("t")
            return head.token, (await other.load("t")).checkpoint.frozen_state

    assert (0, {"big": BIG}) == asyncio.run(scenario())
    assert [NOTHING, 0, None, []] == seen


def test_a_first_save_whose_put_fails_leaves_nothing_and_can_be_repeated(memory, blobs, options, checkpoint):
    async def fail():
        raise StoreUnavailableError("the folder is full")

    async def scenario():
        async with RowStore(memory, **options) as store:
            blobs.before_put = fail
            with pytest.raises(StoreUnavailableError):
                await store.save(checkpoint("t", {"big": BIG}))
            blobs.before_put = None
            assert await store.save(checkpoint("t", {"big": BIG})) == 0
            blobs.before_put = fail
            with pytest.raises(StoreUnavailableError):
                await store.save(checkpoint("u", {"big": BIG}))
        return await memory.read_head("u"), [key for key in blobs.content if key[0] == "u"]

    assert (None, []) == asyncio.run(scenario())


def test_twenty_first_saves_of_one_new_thread_all_get_through(memory, blobs, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as one, RowStore(memory, **options) as two:
            sequences = await asyncio.gather(
                *((one, two)[n % 2].save(checkpoint("t", {"big": BIG + str(n)})) for n in range(20))
            )
            log = await one.get_log("t")
            return sorted(sequences), len(log.entries)

    assert (list(range(20)), 20) == asyncio.run(scenario())


def test_a_lease_can_be_taken_with_the_first_save_and_its_external_values(memory, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as store:
            lease = await store.acquire_lease(
                "t", owner="a", ttl=timedelta(seconds=30), save=checkpoint("t", {"big": BIG}), expected=None
            )
            await store.save_under_lease(checkpoint("t", {"big": BIG + "y"}, "completed"), lease, release=True)
            return lease.saved, (await store.load("t")).sequence, await store.live_lease("t")

    assert (0, 1, None) == asyncio.run(scenario())


def test_a_plain_save_passes_a_foreign_lease_on_a_thread_without_rows(memory, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as store:
            lease = await store.acquire_lease("t", owner="a", ttl=timedelta(seconds=30))
            await store.save(checkpoint("t", {"big": BIG}))
            await store.save_under_lease(checkpoint("t", {"n": 1}), lease)
            return [e.checkpoint.frozen_state for e in (await store.get_log("t")).entries]

    assert [{"big": BIG}, {"n": 1}] == asyncio.run(scenario())


def test_a_purge_that_dies_at_any_step_is_finished_by_whoever_comes_next(clock, checkpoint, later):
    """Each step of the purge is its last, in turn; then a save meets what is left."""

    async def scenario(deadly_step):
        memory, blobs = MemoryBackend(clock), Blobs()
        options = {"offload": Offload(threshold=1000, blobs=blobs)}
        real, steps = memory.commit, 0

        async def commit(batch):
            nonlocal steps
            steps += 1
            if steps == deadly_step:
                raise asyncio.CancelledError
            return await real(batch)

        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("t", {"big": BIG}, "completed"))
            steps, memory.commit = 0, commit
            if deadly_step == 3:

                async def die():
                    raise asyncio.CancelledError

                blobs.before_delete = die
            with pytest.raises(asyncio.CancelledError):
                await store.purge(later)
        memory.commit, blobs.before_delete = real, None
        clock.advance(61)
        async with RowStore(memory, **options) as store:
            if deadly_step == 1:
                assert (await store.load("t")).checkpoint.frozen_state == {"big": BIG}
                assert await store.purge(later) == 1
            else:
                assert await store.load("t") is None
            assert await store.save(checkpoint("t", {"big": BIG + "2"}, "completed")) == 0
            assert (await store.load("t")).checkpoint.frozen_state == {"big": BIG + "2"}
            assert len(blobs.content) == 1
            assert await store.purge(later) == 1
            assert blobs.content == {}
            assert await memory.list_heads(HeadQuery(rowless=True)) == []

    for deadly_step in (1, 2, 3):
        asyncio.run(scenario(deadly_step))


@pytest.mark.parametrize("step", ["delete", "put"])
def test_a_reservation_lives_as_long_as_the_blob_store_works(
    memory, blobs, options, checkpoint, later, clock, monkeypatch, step
):
    """Else somebody takes over, starts anew, and loses what he puts to the delete that still goes on."""
    monkeypatch.setattr(_holding, "EVERY", 0.001)
    seen = []

    async def scenario():
        async with RowStore(memory, **options) as store, RowStore(memory, **options) as other:

            async def take_two_minutes():
                blobs.before_delete = blobs.before_put = None
                head = await memory.read_head("t")
                for _ in range(3):
                    clock.advance(40)
                    async with asyncio.timeout(10):
                        while (await memory.read_head("t")).expires <= clock_micros() + 59_000_000:
                            await asyncio.sleep(0.001)
                assert await other.purge(later) == 0
                seen.append((await memory.read_head("t")).token == head.token)

            def clock_micros():
                return micros(clock.now())

            if step == "delete":
                await store.save(checkpoint("t", {"big": BIG}, "completed"))
                blobs.before_delete = take_two_minutes
                return await store.purge(later)
            blobs.before_put = take_two_minutes
            return await store.save(checkpoint("t", {"big": BIG}, "completed"))

    assert {"delete": 1, "put": 0}[step] == asyncio.run(scenario())
    assert [True] == seen
    assert (1 if step == "put" else 0) == len(blobs.content)


def test_a_save_waits_for_a_purge_that_is_under_way(memory, blobs, options, checkpoint, later):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("t", {"big": BIG}, "completed"))
            gate, reached = asyncio.Event(), asyncio.Event()

            async def hold():
                reached.set()
                await gate.wait()

            blobs.before_delete = hold
            purge = asyncio.create_task(store.purge(later))
            await reached.wait()
            save = asyncio.create_task(store.save(checkpoint("t", {"n": 1})))
            for _ in range(10):
                await asyncio.sleep(0)
            early = save.done(), await store.load("t")
            gate.set()
            return early, await purge, await save, (await store.load("t")).checkpoint.frozen_state

    assert ((False, None), 1, 0, {"n": 1}) == asyncio.run(scenario())


def test_a_purge_that_cannot_reach_the_values_skips_the_thread_and_says_so(memory, options, checkpoint, later, caplog):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("far", {"big": BIG}, "completed"))
            await store.save(checkpoint("near", {"n": 1}, "completed"))
        async with RowStore(memory) as store:
            with caplog.at_level(logging.WARNING):
                purged = await store.purge(later, limit=1)
            return purged, await store.load("near"), (await memory.read_head("far")).sequence

    assert (1, None, 0) == asyncio.run(scenario())
    assert "'far' was not purged" in caplog.text


def test_a_save_that_meets_a_half_purged_thread_whose_values_it_cannot_reach_says_what_to_do(
    memory, blobs, options, checkpoint, later, clock
):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("t", {"big": BIG}, "completed"))

            async def die():
                raise StoreUnavailableError("the folder went away")

            blobs.before_delete = die
            with pytest.raises(StoreUnavailableError):
                await store.purge(later)
        clock.advance(61)
        async with RowStore(memory) as store:
            with pytest.raises(StoreBusyError, match="Offload"):
                await store.save(checkpoint("t", {}))

    asyncio.run(scenario())


def test_a_missing_value_is_named_and_never_read_over(memory, blobs, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("report-1", {"evidence": ""}))
            await store.save(checkpoint("report-1", {"evidence": BIG}))
            ((_, digest),) = blobs.content
            blobs.content.clear()
            with pytest.raises(CorruptCheckpointError) as caught:
                await store.load("report-1")
            assert (await store.load("report-1", at=0)).checkpoint.frozen_state == {"evidence": ""}
            return str(caught.value), digest

    message, digest = asyncio.run(scenario())

    assert (
        f"checkpoint 'report-1' #1 refers to blob {digest} at 'evidence', which the blob store doesn't have" == message
    )


def test_a_store_opened_without_its_blobs_notes_how_to_open_it(memory, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("report-1", {"evidence": BIG}))
        async with RowStore(memory) as store:
            with pytest.raises(CorruptCheckpointError, match="which the blob store doesn't have") as caught:
                await store.load("report-1")
            return caught.value.__notes__

    (note,) = asyncio.run(scenario())

    assert "offload=Offload(blobs=...)" in note


def test_a_false_value_is_named(memory, blobs, options, checkpoint):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("t", {"big": BIG}))
            for key in blobs.content:
                blobs.content[key] = b'"something else"'
            with pytest.raises(CorruptCheckpointError, match="does not match that hash"):
                await store.load("t")

    asyncio.run(scenario())


def test_a_load_that_meets_a_purge_between_rows_and_values_starts_over(memory, blobs, options, checkpoint, later):
    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("t", {"big": BIG}, "completed"))
            real = blobs.get

            async def get(thread_id, digest):
                blobs.get = real
                assert await store.purge(later) == 1
                return await real(thread_id, digest)

            blobs.get = get
            return await store.load("t")

    assert asyncio.run(scenario()) is None


def test_a_save_that_would_be_refused_puts_nothing(memory, blobs, options, checkpoint, later):
    async def scenario():
        async with RowStore(memory, **options) as store:
            lease = await store.acquire_lease("t", owner="a", ttl=timedelta(seconds=30), save=checkpoint("t", {"n": 0}))
            entry = await store.load("t")
            await store.release_lease(lease)
            assert await store.purge(later, states={entry.checkpoint.state}) == 1
            for call in (
                store.save_if_latest(checkpoint("t", {"big": BIG}), entry.revision),
                store.save_if_latest(checkpoint("t", {"big": BIG}), 0),
                store.save_under_lease(checkpoint("t", {"big": BIG}), lease),
            ):
                with pytest.raises(ConflictError):
                    await call

    asyncio.run(scenario())

    assert (0, {}) == (blobs.puts, blobs.content)


def test_a_save_that_a_purge_overtakes_leaves_no_blob_behind(memory, blobs, options, checkpoint, later):
    async def scenario():
        async with RowStore(memory, **options) as store, RowStore(memory, **options) as other:
            await store.save(checkpoint("t", {"n": 0}, "completed"))
            entry = await store.load("t")

            async def purge():
                assert await other.purge(later) == 1

            blobs.after_put = purge
            with pytest.raises(ConflictError):
                await store.save_if_latest(checkpoint("t", {"big": BIG}), entry.revision)
        return await memory.read_head("t")

    assert asyncio.run(scenario()) is None
    assert {} == blobs.content


def test_a_thread_is_known_to_have_external_blobs_before_the_first_is_put(memory, blobs, options, checkpoint):
    seen = []

    async def scenario():
        async with RowStore(memory, **options) as store:
            await store.save(checkpoint("old", {"n": 0}))
            for thread in ("old", "new"):

                async def look(thread=thread):
                    seen.append((await memory.read_head(thread)).external)

                blobs.before_put = look
                await store.save(checkpoint(thread, {"big": BIG}))

    asyncio.run(scenario())

    assert [True, True] == seen


def test_leftovers_that_cannot_be_reached_do_not_keep_a_purge_from_the_others(memory, clock, later):
    async def scenario():
        take = Take("gone", 1)
        for number, external in enumerate((True, False, False)):
            commit = Commit(f"t{number}", bytes([number]) * 8, NOTHING, external=external, lease=take)
            assert isinstance((await memory.commit([commit]))[0], Committed)
        clock.advance(1)
        async with RowStore(memory) as store:
            await store.purge(later, limit=1)
            await store.purge(later, limit=1)
        return [head.thread_id for head in await memory.list_heads(HeadQuery(rowless=True))]

    assert ["t0"] == asyncio.run(scenario())
