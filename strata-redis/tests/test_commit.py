"""A commit is whole or nothing, whatever it holds and whatever it meets."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis_support import DIGEST, HOUR, Place, erase, save, with_backend

from strata_core.clock import micros
from strata_core.errors import CorruptCheckpointError, InvalidInputError, StoreUnavailableError
from strata_core.rows import Commit, Committed, Drop, HeadQuery, Take
from strata_redis import RedisBackend

YEARS = [
    micros(datetime(1, 1, 1, tzinfo=UTC)),
    -1,
    0,
    1,
    micros(datetime(2255, 6, 6, tzinfo=UTC)) + 1,
    micros(datetime.max.replace(tzinfo=UTC)),
]
HOSTILE = [
    "a:b",
    "a",
    "{a}",
    "}{",
    "{",
    "*",
    "?[a-z]",
    "a\r\nb",
    "\x01\x7f",
    "t:x",
    "index",
    "tokens",
    " ",
    "é" * 256,
    "x" * 512,
    "\U0001f600",
    "0",
    "head",
]


def test_times_of_any_year_come_back_exactly_and_in_order(place: Place) -> None:
    """A script's numbers are doubles, which cannot hold the microseconds of the year 9999."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save(f"t{at}", updated=time, due=time) for at, time in enumerate(YEARS)])
        heads = [await backend.read_head(f"t{at}") for at in range(len(YEARS))]
        listed = await backend.list_heads(HeadQuery(oldest_first=True))
        due = await backend.list_heads(HeadQuery(due_until=1))

        assert [(time, time) for time in YEARS] == [(head.updated, head.due) for head in heads if head is not None]
        assert YEARS == [head.updated for head in listed]
        assert YEARS[3::-1] == [head.updated for head in due]

    with_backend(place, check)


def test_a_lease_of_ten_years_expires_to_the_microsecond(place: Place) -> None:
    ten_years = timedelta(days=3653) // timedelta(microseconds=1) + 1

    async def check(backend: RedisBackend) -> None:
        (taken,) = await backend.commit([Commit("t", os.urandom(8), lease=Take("me", ten_years))])
        head = await backend.read_head("t")

        assert isinstance(taken, Committed)
        assert head is not None
        assert taken.expires == head.expires
        assert ten_years - 60_000_000 < head.expires - head.now <= ten_years
        assert ["t"] == [found.thread_id for found in await backend.list_heads(HeadQuery(leased=True, rowless=True))]

    with_backend(place, check)


def test_hostile_ids_stay_apart(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        await backend.commit([save(each, body=each.encode(), blobs=[(DIGEST, each.encode())]) for each in HOSTILE])
        bodies = [(await backend.read(each, None, None))[0].body.decode() for each in HOSTILE]
        blobs = [(await backend.read_blobs(each, [DIGEST]))[DIGEST].decode() for each in HOSTILE]
        listed = [head.thread_id for head in await backend.list_heads(HeadQuery())]
        for gone in HOSTILE[::2]:
            await backend.commit([erase(gone)])
        left = [head.thread_id for head in await backend.list_heads(HeadQuery())]

        assert HOSTILE == bodies == blobs
        assert sorted(HOSTILE, key=str.encode, reverse=True) == listed
        assert sorted(HOSTILE[1::2], key=str.encode, reverse=True) == left

    with_backend(place, check)


def test_two_prefixes_never_touch_each_other(place: Place) -> None:
    """Not even where one begins with the other, or looks like a bucket of it."""
    others = [Place(place.servers, place.server_url, f"{place.prefix}{end}") for end in (":1", ".x", ":meta")]

    async def fill(backend: RedisBackend) -> None:
        await backend.commit([save(each, "completed", lease=Take("me", HOUR)) for each in HOSTILE])

    async def empty(backend: RedisBackend) -> None:
        heads = await backend.list_heads(HeadQuery())
        await backend.commit([erase(head.thread_id, token=head.token) for head in heads])

    for each in (place, *others):
        with_backend(each, fill)
    before = [each.footprint() for each in others]
    with_backend(place, empty)

    assert before == [each.footprint() for each in others]
    assert len(HOSTILE) < len(before[0])
    assert {f"{{{place.prefix}:meta}}"} == {name for name in place.names() if not name.endswith("}tokens")}


def test_an_erased_thread_leaves_nothing_but_the_counter(place: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        (done,) = await backend.commit(
            [
                save(
                    "t",
                    blobs=[(DIGEST, b"x")],
                    metadata={"a": "b", "strata.visit": "1"},
                    due=5,
                    graph_id="g",
                    graph_version="1",
                    lease=Take("me", HOUR),
                )
            ]
        )
        assert isinstance(done, Committed)
        assert 7 == len(place.index())
        await backend.commit([erase("t", token=done.token, lease=Drop())])
        (again,) = await backend.commit([Commit("t", os.urandom(8), lease=Take("me", HOUR))])

        assert isinstance(again, Committed)
        assert again.token > done.token
        await backend.commit([Commit("t", os.urandom(8), token=again.token, lease=Drop())])

    with_backend(place, check)

    assert [f"{{{place.prefix}:meta}}", (place.tag_of("t") + b"tokens").decode()] == sorted(place.names(), reverse=True)


def test_the_tokens_of_all_threads_differ(place: Place) -> None:
    """A lease of one thread is never good for another one, in whatever bucket."""

    async def check(backend: RedisBackend) -> None:
        outcomes = await backend.commit(
            [Commit(f"t{number}", os.urandom(8), lease=Take("me", HOUR)) for number in range(64)]
        )

        assert 64 == len({outcome.token for outcome in outcomes if isinstance(outcome, Committed)})

    with_backend(place, check)


@pytest.mark.parametrize("name", ["index", "expiring", "tokens"])
def test_a_key_of_another_kind_is_told_before_anything_is_written(place: Place, name: str) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", "completed")])
        server.command("DEL", place.tag_of("t") + name.encode())
        server.command("RPUSH", place.tag_of("t") + name.encode(), "x")
        before = place.footprint()
        with pytest.raises(CorruptCheckpointError, match="another kind of key") as caught:
            await backend.commit([save("t", lease=Take("me", HOUR))])

        assert "t" == caught.value.thread_id
        assert before == place.footprint()

    with_backend(place, check)


def test_one_thread_that_is_none_takes_no_other_of_its_bucket_with_it_halfway(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        one, other = [name for name in (f"t{n}" for n in range(200)) if place.tag_of(name) == place.keys.tags[3]][:2]
        server.command("SET", place.thread_key(other), "somebody else's")
        before = place.footprint()
        with pytest.raises(CorruptCheckpointError, match="another kind of key"):
            await backend.commit([save(one), save(other)])

        assert before == place.footprint()
        await backend.commit([save(one)])
        assert await backend.read_head(one) is not None

    with_backend(place, check)


def test_a_counter_that_is_no_number_is_told_before_anything_is_written(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        server.command("SET", place.tag_of("t") + b"tokens", "many")
        before = place.footprint()
        with pytest.raises(CorruptCheckpointError):
            await backend.commit([save("t", lease=Take("me", HOUR))])

        assert before == place.footprint()

    with_backend(place, check)


def test_a_thread_that_somebody_damaged_is_corrupt_and_can_be_named(place: Place) -> None:
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t"), save("u"), save("v")])
        server.command("HDEL", place.thread_key("t"), "s0")
        server.command("HSET", place.thread_key("u"), "r0", "damaged")
        server.command("HSET", place.thread_key("v"), "head", "damaged")
        for thread_id, problem in (("t", "is missing"), ("u", "cannot be read")):
            with pytest.raises(CorruptCheckpointError, match=problem) as caught:
                await backend.read(thread_id, None, None)
            assert (thread_id, 0) == (caught.value.thread_id, caught.value.sequence)
        with pytest.raises(CorruptCheckpointError, match="head that cannot be read"):
            await backend.read_head("v")

    with_backend(place, check)


def test_metadata_without_end_is_listed(place: Place) -> None:
    """More members than a script can pass on at once."""
    pairs = {f"key {number}": "x" for number in range(9_000)}

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", metadata=pairs)])
        found = await backend.list_heads(HeadQuery(metadata={"key 8999": "x"}))
        assert ["t"] == [head.thread_id for head in found]
        await backend.commit([save("t", metadata={})])

        assert [] == await backend.list_heads(HeadQuery(metadata={"key 8999": "x"}))
        assert 2 == len(place.index())

    with_backend(place, check)


def test_a_thousand_blobs_come_with_one_row(place: Place) -> None:
    blobs = [(f"sha256:{number:064x}", b"%d" % number) for number in range(5_000)]

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", blobs=blobs)])

        assert dict(blobs) == await backend.read_blobs("t", [digest for digest, _ in blobs])

    with_backend(place, check)


def test_two_commits_of_one_thread_in_a_batch_are_refused(valkey: Place) -> None:
    async def check(backend: RedisBackend) -> None:
        with pytest.raises(InvalidInputError, match="two commits of one thread"):
            await backend.commit([save("t"), save("u"), save("t")])

        assert await backend.read_head("u") is None

    with_backend(valkey, check)


def test_rows_larger_than_a_slice_come_in_several_steps_and_belong_together(
    valkey: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strata_redis._read.SLICE", 1000)

    async def check(backend: RedisBackend) -> None:
        for number in range(20):
            await backend.commit([save("t", body=b"%d" % number * 300, whole=number == 0)])
        rows = await backend.read("t", 3, 17)
        latest = await backend.read("t", None, None)

        assert [(n, 0, b"%d" % n * 300) for n in range(18)] == [(r.sequence, r.whole_at, r.body) for r in rows]
        assert list(range(20)) == [row.sequence for row in latest]

    with_backend(valkey, check)


def test_a_thread_that_begins_another_life_between_two_steps_is_read_again(
    valkey: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strata_redis._read.SLICE", 1)

    async def check(backend: RedisBackend) -> None:
        for _ in range(3):
            await backend.commit([save("t", body=b"old")])
        server = backend._server
        assert server is not None
        run, steps = server.run, 0

        async def interrupted(calls: Any) -> Any:
            nonlocal steps
            answers = await run(calls)
            steps += 1
            if steps == 2:
                monkeypatch.undo()
                await backend.commit([erase("t")])
                for _ in range(3):
                    await backend.commit([save("t", body=b"new")])
            return answers

        monkeypatch.setattr(server, "run", interrupted)
        rows = await backend.read("t", 0, None)

        assert [b"new"] * 3 == [row.body for row in rows]

    with_backend(valkey, check)


def test_a_full_memory_takes_no_part_of_a_save_and_lets_loads_and_purges_through(place: Place) -> None:
    """The limit is put where the server stands, so that the next byte is too much."""
    (server,) = place.servers

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t", blobs=[(DIGEST, b"x" * 1000)])])
        before = place.footprint()
        server.command("CONFIG", "SET", "maxmemory", "1")
        try:
            with pytest.raises(StoreUnavailableError, match="its memory is full") as caught:
                await backend.commit([save("t", lease=Take("me", HOUR))])
            with pytest.raises(StoreUnavailableError, match="its memory is full"):
                await backend.commit([Commit("t", os.urandom(8), lease=Take("me", HOUR))])
            full = place.footprint()
            rows = await backend.read("t", None, None)
            listed = await backend.list_heads(HeadQuery(states=frozenset({"running"})))
            (done,) = await backend.commit([erase("t")])
        finally:
            server.command("CONFIG", "SET", "maxmemory", "0")

        assert "purge, or raise maxmemory" in str(caught.value)
        assert (1, ["t"]) == (len(rows), [head.thread_id for head in listed])
        assert not caught.value.maybe_written
        assert before == full
        assert isinstance(done, Committed)
        assert [f"{{{place.prefix}:meta}}"] == place.names()
        (again,) = await backend.commit([save("t")])
        assert isinstance(again, Committed)

    with_backend(place, check)
