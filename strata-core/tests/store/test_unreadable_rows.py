"""Stored rows that somebody damaged: an error that names the row, never a silent step back."""

from __future__ import annotations

import asyncio
import json

import attrs
import pytest

from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.options import Deltas, Offload
from strata_core.store import RowStore

OWN = {"deltas": Deltas(), "offload": Offload(threshold=1000)}


def _envelope(**changes):
    members = {"schema_version": "1.8.0", "thread_id": "t", "status": "running", "created_at": "2026-01-01T00:00:00Z"}
    return json.dumps({**members, **changes}).encode()


def _damage(memory, index, **changes):
    rows = memory._rows["t"]
    rows[index] = attrs.evolve(rows[index], **changes)


def _load(memory, checkpoint, damage, at=None):
    async def scenario():
        async with RowStore(memory, **OWN) as store:
            for n in range(4):
                await store.save(checkpoint("t", {"n": n, "big": "x" * 2000}))
        damage()
        async with RowStore(memory, **OWN) as store:
            return await store.load("t", at=at)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    "changes",
    [
        {"body": b"not json"},
        {"body": b"[1]"},
        {"body": b"\xff\xfe{}"},
        {"body": b'{"base":1,"set":{"n":1}}'},
        {"body": b'{"base":1,"set":{"n":1},"unset":[],"more":1}'},
        {"body": b'{"base":0,"set":{"n":1},"unset":[]}'},
        {"body": b'{"base":2,"set":{"n":NaN},"unset":[]}'},
        {"body": b'{"base":2,"set":{"n":1e999},"unset":[]}'},
        {"body": b'{"base":2,"set":{"n":"\\ud800"},"unset":[]}'},
        {"body": b'{"base":2,"set":{"n":1},"unset":["nobody"]}'},
        {"body": b'{"base":true,"set":{"n":1},"unset":[]}'},
        {"body": b'{"base":2,"set":' + b"[" * 100_000},
        {"body": b'{"base":2,"set":{"n":' + b"9" * 5000 + b'},"unset":[]}'},
        {"version": "1.7.0"},
        {"version": "0.1.0"},
        {"version": "one"},
        {"sequence": 9},
        {"whole_at": 3},
        {"envelope": b"{}"},
        {"envelope": b"nothing"},
        {"envelope": _envelope(thread_id="other")},
        {"envelope": _envelope(status="asleep")},
        {"envelope": _envelope(status=1)},
        {"envelope": _envelope(created_at="yesterday")},
        {"envelope": _envelope(metadata={"k": 1})},
        {"envelope": _envelope(unknown=1)},
    ],
)
def test_a_damaged_row_is_an_error_that_names_it(memory, checkpoint, changes):
    with pytest.raises(CorruptCheckpointError) as caught:
        _load(memory, checkpoint, lambda: _damage(memory, 3, **changes))

    assert "t" == caught.value.thread_id
    assert caught.value.sequence in {3, 9}


def test_a_row_of_a_newer_format_is_refused_by_its_version(memory, checkpoint):
    with pytest.raises(SchemaVersionError, match=r"1\.10\.0 is newer than 1\.9\.0") as caught:
        _load(memory, checkpoint, lambda: _damage(memory, 3, version="1.10.0"))

    assert ("1.10.0", "1.9.0") == (caught.value.found, caught.value.supported)


def test_a_damaged_base_breaks_every_row_that_builds_on_it_and_no_other(memory, checkpoint):
    with pytest.raises(CorruptCheckpointError) as caught:
        _load(memory, checkpoint, lambda: _damage(memory, 1, body=b"gone"), at=2)
    assert 1 == caught.value.sequence

    memory._rows.clear(), memory._heads.clear()
    assert 0 == _load(memory, checkpoint, lambda: _damage(memory, 1, body=b"gone"), at=0).sequence


def test_a_missing_row_in_a_chain_is_noticed(memory, checkpoint):
    with pytest.raises(CorruptCheckpointError, match="missing"):
        _load(memory, checkpoint, lambda: memory._rows["t"].pop(1))


def test_an_own_blob_with_another_content_is_noticed(memory, checkpoint):
    def swap():
        (digest,) = memory._blobs["t"]
        memory._blobs["t"][digest] = b'"pickle me"'

    with pytest.raises(CorruptCheckpointError, match="does not match"):
        _load(memory, checkpoint, swap)


def test_a_listing_does_not_skip_a_thread_that_it_cannot_read(memory, checkpoint):
    async def scenario():
        async with RowStore(memory) as store:
            await store.save(checkpoint("t", {}))
            _damage(memory, 0, envelope=b"nothing")
            await store.list_threads()

    with pytest.raises(CorruptCheckpointError):
        asyncio.run(scenario())


def test_a_page_of_the_log_does_not_depend_on_a_row_that_it_does_not_return(memory, checkpoint):
    async def scenario():
        async with RowStore(memory) as store:
            await store.save(checkpoint("t", {}))
            await store.save(checkpoint("t", {}))
            _damage(memory, 1, version="1.10.0", body=b"?")
            page = await store.get_log("t", limit=1)
            return [entry.sequence for entry in page.entries], page.next_start

    assert ([0], 1) == asyncio.run(scenario())


def test_a_listing_that_meets_a_newer_format_names_the_thread(memory, checkpoint):
    async def scenario():
        async with RowStore(memory) as store:
            await store.save(checkpoint("t", {}))
            _damage(memory, 0, envelope=_envelope(schema_version="1.10.0"))
            await store.list_threads()

    with pytest.raises(SchemaVersionError, match=r"'t' #0.*1\.10\.0"):
        asyncio.run(scenario())
