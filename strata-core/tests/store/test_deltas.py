"""Deltas and offloaded values, looked at as rows."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from strata_core.errors import InvalidInputError
from strata_core.options import Deltas, Offload
from strata_core.store import RowStore

BIG = "x" * 3000


def _rows(memory, thread_id="t"):
    return memory._rows[thread_id]


def test_rows_0_16_and_32_of_a_long_delta_thread_are_whole(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas()) as store:
            for step in range(40):
                await store.save(checkpoint("t", {"constant": BIG, "step": step}))

    asyncio.run(scenario())

    assert [0, 16, 32] == [row.sequence for row in _rows(memory) if row.whole_at == row.sequence]
    assert b'{"base":16,"set":{"step":17},"unset":[]}' == _rows(memory)[17].body


def test_every_row_of_a_delta_thread_reads_back_equal(memory, checkpoint):
    states = [{"constant": BIG, "step": n, **({"extra": [n]} if n % 3 else {})} for n in range(40)]

    async def scenario():
        async with RowStore(memory, deltas=Deltas(full_every=7)) as store:
            for state in states:
                await store.save(checkpoint("t", state))
            page = await store.get_log("t", limit=1000)
            single = [(await store.load("t", at=n)).checkpoint.frozen_state for n in range(40)]
            return [entry.checkpoint.frozen_state for entry in page.entries], single

    page, single = asyncio.run(scenario())

    assert states == page
    assert states == single


def test_the_first_save_after_a_restart_is_whole(memory, checkpoint):
    async def scenario():
        for step in (0, 1):
            async with RowStore(memory, deltas=Deltas()) as store:
                await store.save(checkpoint("t", {"step": step}))
                await store.save(checkpoint("t", {"step": step, "more": 1}))

    asyncio.run(scenario())

    assert [0, 0, 2, 2] == [row.whole_at for row in _rows(memory)]


def test_the_save_after_another_writer_is_whole_and_complete(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas()) as one, RowStore(memory, deltas=Deltas()) as two:
            await one.save(checkpoint("t", {"a": 1, "n": 0}))
            await two.save(checkpoint("t", {"n": 1}))
            await one.save(checkpoint("t", {"a": 1, "n": 2}))
            return (await two.load("t")).checkpoint.frozen_state

    assert {"a": 1, "n": 2} == asyncio.run(scenario())
    assert [0, 1, 2] == [row.whole_at for row in _rows(memory)]


def test_only_running_checkpoints_become_deltas(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas()) as store:
            for status in ("running", "running", "interrupted", "running", "failed", "cancelled", "completed", "ended"):
                await store.save(checkpoint("t", {"n": 1}, status))

    asyncio.run(scenario())

    assert [0, 0, 2, 3, 4, 5, 6, 7] == [row.whole_at for row in _rows(memory)]


def test_a_state_whose_keys_changed_their_order_is_written_whole(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas()) as store:
            await store.save(checkpoint("t", {"a": 1, "b": 2}))
            await store.save(checkpoint("t", {"b": 2, "a": 1}))
            await store.save(checkpoint("t", {"b": 2, "a": 1, "c": 3}))
            return list((await store.load("t")).checkpoint.frozen_state)

    assert ["b", "a", "c"] == asyncio.run(scenario())
    assert [0, 1, 1] == [row.whole_at for row in _rows(memory)]


def test_a_purged_and_restarted_thread_is_not_taken_for_the_remembered_one(memory, checkpoint, later):
    async def scenario():
        options = {"deltas": Deltas(), "offload": Offload(threshold=1000)}
        async with RowStore(memory, **options) as one, RowStore(memory, **options) as two:
            await one.save(checkpoint("t", {"big": BIG, "n": 0, "old": 1}))
            await two.save(checkpoint("t", {"n": 1}, "completed"))
            assert await two.purge(later) == 1
            await two.save(checkpoint("t", {"n": 7}))
            await one.save(checkpoint("t", {"big": BIG, "n": 8}))
            return (await two.load("t")).checkpoint.frozen_state

    assert {"big": BIG, "n": 8} == asyncio.run(scenario())


def test_a_bare_number_still_fits_a_restarted_thread_that_the_store_remembers_otherwise(memory, checkpoint, later):
    async def scenario():
        async with RowStore(memory, deltas=Deltas()) as one, RowStore(memory) as two:
            await one.save(checkpoint("t", {"n": 0}))
            await two.purge(later, states={checkpoint("t", {}).state})
            await two.save(checkpoint("t", {"n": 1}))
            return await one.save_if_latest(checkpoint("t", {"n": 2}), 0)

    assert 1 == asyncio.run(scenario())


def test_a_value_is_stored_once_however_many_rows_refer_to_it(probe, memory, checkpoint):
    async def scenario():
        async with RowStore(probe, deltas=Deltas(), offload=Offload(threshold=1000)) as store:
            for step in range(20):
                await store.save(checkpoint("t", {"big": BIG, "step": step}))
            await store.save(checkpoint("t", {"big": BIG, "step": 20}, "completed"))
            return (await store.load("t")).checkpoint.frozen_state

    assert {"big": BIG, "step": 20} == asyncio.run(scenario())
    assert 1 == sum(len(commit.blobs) for batch in probe.batches for commit in batch)
    assert {"whole", "blobs"} == set(json.loads(_rows(memory)[-1].body))


def test_an_unreachable_threshold_reads_old_values_and_offloads_none(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, offload=Offload(threshold=1000)) as store:
            await store.save(checkpoint("t", {"big": BIG}))
        async with RowStore(memory, offload=Offload(threshold=sys.maxsize)) as store:
            old = (await store.load("t")).checkpoint.frozen_state
            await store.save(checkpoint("t", {"big": BIG + "y"}))
            return old, (await store.load("t")).checkpoint.frozen_state

    assert ({"big": BIG}, {"big": BIG + "y"}) == asyncio.run(scenario())
    assert ["1.9.0", "1.7.0"] == [row.version for row in _rows(memory)]
    assert 1 == len(memory._blobs["t"])


def test_a_key_that_is_offloaded_keeps_its_place(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, offload=Offload(threshold=1000)) as store:
            await store.save(checkpoint("t", {"a": 1, "big": BIG, "z": 2}))
            return list((await store.load("t")).checkpoint.frozen_state)

    assert ["a", "big", "z"] == asyncio.run(scenario())


def test_a_list_that_is_changed_after_the_call_is_not_what_gets_stored(probe, checkpoint):
    async def scenario():
        async with RowStore(probe, deltas=Deltas(), offload=Offload(threshold=10)) as store:
            items = ["a long enough text"]
            save = asyncio.ensure_future(store.save(checkpoint("t", {"items": items})))
            await asyncio.sleep(0)
            items.append("later")
            await save
            return (await store.load("t")).checkpoint.frozen_state

    assert {"items": ["a long enough text"]} == asyncio.run(scenario())


def test_a_list_that_is_changed_while_a_save_is_sent_again_whole_is_not_what_gets_stored(probe, memory, checkpoint):
    async def scenario():
        async with RowStore(probe, deltas=Deltas()) as store, RowStore(memory) as other:
            await store.save(checkpoint("t", {"items": [0]}))
            await other.save(checkpoint("t", {"items": ["theirs"]}))  # the remembered base is wrong now
            items = [0, 1]
            save = asyncio.ensure_future(store.save(checkpoint("t", {"items": items})))
            await asyncio.sleep(0)
            items.append("later")
            await save
            return (await store.load("t")).checkpoint.frozen_state

    assert {"items": [0, 1]} == asyncio.run(scenario())


def test_what_a_load_returns_shares_nothing_with_the_store_or_another_entry(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas(), offload=Offload(threshold=5)) as store:
            await store.save(checkpoint("t", {"list": [1, 2, 3, 4], "n": 0}))
            await store.save(checkpoint("t", {"list": [1, 2, 3, 4], "n": 1}))
            page = await store.get_log("t")
            page.entries[0].checkpoint.frozen_state["list"].append("mine")
            again = await store.get_log("t")
            return [e.checkpoint.frozen_state["list"] for e in [*page.entries[1:], *again.entries]]

    assert [[1, 2, 3, 4]] * 3 == asyncio.run(scenario())


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Deltas(full_every=1), "full_every"),
        (lambda: Deltas(full_every=True), "full_every"),
        (lambda: Deltas(cached_threads=0), "cached_threads"),
        (lambda: Deltas(cached_bytes=0), "cached_bytes"),
        (lambda: Offload(threshold=0), "threshold"),
        (lambda: Offload(threshold=1.5), "threshold"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_options_out_of_range_are_refused_by_name(make, argument):
    with pytest.raises(InvalidInputError) as caught:
        make()

    assert argument == caught.value.argument


def test_the_cache_forgets_the_least_recently_used_threads_first(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas(cached_threads=2)) as store:
            for thread in ("a", "b", "a", "c", "a", "b"):
                await store.save(checkpoint(thread, {"n": 1}))

    asyncio.run(scenario())

    assert [0, 0, 0] == [row.whole_at for row in _rows(memory, "a")]
    assert [0, 1] == [row.whole_at for row in _rows(memory, "b")]


def test_the_cache_is_bounded_by_bytes(memory, checkpoint):
    async def scenario():
        async with RowStore(memory, deltas=Deltas(cached_bytes=2000)) as store:
            for step in range(2):
                await store.save(checkpoint("big", {"text": BIG, "n": step}))
                await store.save(checkpoint("small", {"n": step}))

    asyncio.run(scenario())

    assert [0, 1] == [row.whole_at for row in _rows(memory, "big")]
    assert [0, 0] == [row.whole_at for row in _rows(memory, "small")]


def test_long_values_that_are_no_strings_are_remembered_by_a_hash_and_still_compared(memory, checkpoint):
    numbers = list(range(2000))

    async def scenario():
        async with RowStore(memory, deltas=Deltas()) as store:
            await store.save(checkpoint("t", {"numbers": list(numbers), "n": 0}))
            await store.save(checkpoint("t", {"numbers": list(numbers), "n": 1}))
            await store.save(checkpoint("t", {"numbers": [*numbers, 1], "n": 1}))

    asyncio.run(scenario())

    assert [b'{"base":0,"set":{"n":1},"unset":[]}'] == [row.body for row in _rows(memory)[1:2]]
    assert ["numbers"] == list(json.loads(_rows(memory)[2].body)["set"])
