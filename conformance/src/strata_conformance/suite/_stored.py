"""Core's store on the backend, looked at from below: what is stored, and what happens when that is damaged."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from datetime import timedelta
from typing import Any, Final

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, SHORT, checkpoint, completed
from strata_conformance.suite._backend import BackendTests, OpenBackend, opened, row
from strata_conformance.suite._time import outlive
from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.options import Deltas, Offload
from strata_core.records import CheckpointStatus
from strata_core.rows import Commit, HeadQuery
from strata_core.store import RowStore
from strata_core.testing import FakeClock

__all__ = ["StoredRowTests"]

LATER: Final = BASE + timedelta(days=1)
BIG: Final = "x" * 1000
NAME: Final = "sha256:" + hashlib.sha256(json.dumps(BIG).encode()).hexdigest()
GOOD: Final = (
    b'{"schema_version":"1.7.0","thread_id":"t","status":"running","created_at":"2026-03-01T12:00:00.000000Z"}'
)

HOSTILE_BODIES: Final[list[tuple[str, bytes]]] = [
    ("1.7.0", b""),
    ("1.7.0", b"{"),
    ("1.7.0", b"[]"),
    ("1.7.0", b"null"),
    ("1.7.0", b'"text"'),
    ("1.7.0", b'{"a":NaN}'),
    ("1.7.0", b'{"a":-Infinity}'),
    ("1.7.0", b'{"a":1e999}'),
    ("1.7.0", b'{"a":"\xff"}'),
    ("1.7.0", b'{"a":"\\ud800"}'),
    ("1.7.0", b'{"a":' + b"9" * 5000 + b"}"),
    ("1.7.0", b"[" * 100_000),
    ("1.7.0", b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    ("1.7.0", b"\x80\x04\x95.."),
    ("1.9.0", b'{"whole":5}'),
    ("1.9.0", b'{"whole":{},"blobs":{"a":"sha256:short"}}'),
    ("1.9.0", b'{"whole":{},"blobs":{"a":"' + NAME.encode() + b'"}}'),
    ("1.9.0", b'{"whole":{"a":null},"blobs":["a"]}'),
    ("1.9.0", b'{"whole":{"a":null},"blobs":{"a":"../../etc/passwd"}}'),
    ("1.9.0", b'{"whole":{},"more":1}'),
    ("1.9.0", b"{}"),
    ("1.8.0", b'{"base":0,"set":{},"unset":[]}'),
]
HOSTILE_ENVELOPES: Final[list[bytes]] = [
    b"",
    b"{",
    b"[]",
    b"null",
    GOOD.replace(b'"t"', b'"other"'),
    GOOD.replace(b'"t"', b"5"),
    GOOD.replace(b"running", b"paused"),
    GOOD.replace(b"2026-03-01", b"2026-13-01"),
    GOOD.replace(b'"2026-03-01T12:00:00.000000Z"', b"1772366400"),
    GOOD.replace(b"000000Z", b"000000"),
    GOOD[:-1] + b',"unknown":1}',
    GOOD[:-1] + b',"metadata":{"a":1}}',
    GOOD[:-1] + b',"decision":{"boundary":"N"}}',
    GOOD[:-1] + b',"wait":{"kind":"sleep"}}',
    GOOD[:-1] + b',"nested":{"schema_version":"1.7.0"}}',
    GOOD[:-1] + b',"graph":"g"}',
    GOOD[:-1] + b',"suspended_node":1}',
    b"\x80\x04\x95.",
]


async def _damaged(open_backend: OpenBackend, **fields: Any) -> tuple[type[BaseException] | None, Any]:
    """Put one good row and one as given; return how a load of the latest ends, and a load of the first."""
    backend = open_backend()
    async with RowStore(backend) as store:
        await store.save(checkpoint(state={"n": "good"}))
        new = row(1, **({"envelope": GOOD, "body": b"{}"} | fields))
        await backend.commit([Commit("t", os.urandom(8), row=new)])
        error: BaseException | None = None
        try:
            entry = await store.load("t")
        except (CorruptCheckpointError, SchemaVersionError) as raised:
            error = raised
        else:
            raise AssertionError(f"{fields} was loaded as {entry}")
        first = await store.load("t", at=0)
        assert first is not None
        assert {"n": "good"} == first.checkpoint.frozen_state
        return type(error), error


class StoredRowTests(BackendTests):
    """Rows as core stores them on this backend, and damaged ones."""

    @promise("stored-1")
    @pytest.mark.requires(Capability.DELTAS)
    async def test_rows_0_16_and_32_of_a_long_chain_are_whole(self, open_backend: OpenBackend) -> None:
        """With deltas, rows 0, 16 and 32 of a running thread are whole, and all between are differences; a load reads
        no more rows than back to the whole one.
        """
        backend = open_backend()
        async with RowStore(backend, deltas=Deltas()) as store:
            for n in range(34):
                await store.save(checkpoint(state={"kept": BIG, "n": n}))
            rows = await backend.read("t", 0, None)
            tail = await backend.read("t", None, None)

        assert [0, 16, 32] == [r.sequence for r in rows if r.whole_at == r.sequence]
        assert [n // 16 * 16 for n in range(34)] == [r.whole_at for r in rows]
        assert [32, 33] == [r.sequence for r in tail]
        assert all((len(r.body) > 1000) == (r.sequence % 16 == 0) for r in rows)

    @promise("stored-2")
    @pytest.mark.requires(Capability.DELTAS)
    async def test_a_row_that_cannot_build_on_the_one_before_is_whole(self, open_backend: OpenBackend) -> None:
        """With deltas, the first row after a restart, after another writer's and after the key order changed is whole,
        and so is every row that is not running.
        """
        whole = []
        for _ in range(2):
            backend, other = open_backend(), open_backend()
            async with RowStore(backend, deltas=Deltas()) as store, RowStore(other) as elsewhere:
                for state in ({"kept": BIG, "n": 0}, {"kept": BIG, "n": 1}):
                    await store.save(checkpoint(state=state))
                await elsewhere.save(checkpoint(state={"n": 2}))
                await store.save(checkpoint(state={"kept": BIG, "n": 3}))
                await store.save(checkpoint(state={"n": 4, "kept": BIG}))
                await store.save(checkpoint(status=CheckpointStatus.INTERRUPTED, state={"n": 5, "kept": BIG}))
                rows = await backend.read("t", 0, None)
                whole = [r.sequence for r in rows if r.whole_at == r.sequence]

        assert [0, 2, 3, 4, 5, 6, 8, 9, 10, 11] == whole

    @promise("stored-3")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    async def test_an_offloaded_value_is_stored_once(self, open_backend: OpenBackend) -> None:
        """An offloaded value is stored once, under its digest, for all rows of its thread; the rows hold a null in its
        place and name the digest.
        """
        backend = open_backend()
        async with RowStore(backend, offload=Offload(threshold=1000)) as store:
            for n in range(3):
                await store.save(checkpoint(state={"big": BIG, "n": n}))
            rows = await backend.read("t", 0, None)
            blobs = dict(await backend.read_blobs("t", [NAME]))

        assert [{"whole": {"big": None, "n": n}, "blobs": {"big": NAME}} for n in range(3)] == [
            json.loads(r.body) for r in rows
        ]
        assert ["1.9.0"] * 3 == [r.version for r in rows]
        assert {NAME: json.dumps(BIG).encode()} == blobs

    @promise("stored-4")
    @pytest.mark.parametrize(("version", "body"), HOSTILE_BODIES)
    async def test_a_damaged_state_is_an_error(self, open_backend: OpenBackend, version: str, body: bytes) -> None:
        """A load of a row whose state cannot be read as written raises CorruptCheckpointError that names the thread and
        the sequence; it never steps back to an earlier row, and earlier rows stay readable.
        """
        kind, error = await _damaged(open_backend, version=version, body=body)

        assert CorruptCheckpointError is kind
        assert ("t", 1) == (error.thread_id, error.sequence)

    @promise("stored-5")
    @pytest.mark.parametrize("envelope", HOSTILE_ENVELOPES)
    async def test_a_damaged_record_is_an_error(self, open_backend: OpenBackend, envelope: bytes) -> None:
        """A load of a row whose record is malformed, of another thread, or has unknown members raises
        CorruptCheckpointError that names the thread and the sequence.
        """
        kind, error = await _damaged(open_backend, envelope=envelope)

        assert CorruptCheckpointError is kind
        assert ("t", 1) == (error.thread_id, error.sequence)

    @promise("stored-6")
    @pytest.mark.parametrize("version", ["1.10.0", "2.0.0", "1.99.0"])
    async def test_a_newer_row_is_refused_by_its_version(self, open_backend: OpenBackend, version: str) -> None:
        """A load of a row of a newer format raises SchemaVersionError that names the version found and the one
        supported; it is never skipped.
        """
        envelope = GOOD.replace(b"1.7.0", version.encode())
        kind, error = await _damaged(open_backend, version=version, envelope=envelope)

        assert SchemaVersionError is kind
        assert (version, "1.9.0") == (error.found, error.supported)

    @promise("stored-7")
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_purge_leaves_nothing_in_the_backend(self, open_backend: OpenBackend, clock: FakeClock) -> None:
        """A purge leaves no head, row or blob of a thread in the backend, and removes what leases of runs that never
        saved have left.
        """
        backend = open_backend()
        own = Capability.OWN_BLOBS in backend.capabilities
        async with RowStore(backend, offload=Offload(threshold=10) if own else None) as store:
            await store.save(completed(state={"big": BIG}))
            lease = await store.acquire_lease("never saved", owner="dead", ttl=SHORT)
            assert lease is not None
            await outlive(store, clock, lease, SHORT)
            blobs = len(await backend.read_blobs("t", [NAME]))
            purged = await store.purge(LATER)
            left = (
                [await backend.read_head(thread) for thread in ("t", "never saved")],
                list(await backend.read("t", 0, None)),
                dict(await backend.read_blobs("t", [NAME])),
                [list(await backend.list_heads(HeadQuery(rowless=rowless))) for rowless in (True, False)],
            )

        assert int(own) == blobs
        assert 1 == purged
        assert ([None, None], [], {}, [[], []]) == left

    @promise("stored-8")
    @pytest.mark.requires(Capability.EXTERNAL_BLOBS)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_purge_skips_a_thread_whose_blobs_it_cannot_reach(self, open_backend: OpenBackend) -> None:
        """A purge by a store that was not given the threads' blob store leaves them whole; one that was takes them, and
        leaves nothing in the backend either.
        """
        blobs = InMemoryBlobStore()
        backend = open_backend()
        async with RowStore(open_backend(), offload=Offload(threshold=10, blobs=blobs)) as store:
            await store.save(completed(state={"big": BIG}))
            async with RowStore(open_backend()) as blind:
                skipped = await blind.purge(LATER)
            kept = await store.load("t")
            purged = await store.purge(LATER)
            gone = await blobs.get("t", NAME)
        async with opened(backend):
            head = await backend.read_head("t")

        assert [0, 1] == [skipped, purged]
        assert kept is not None
        assert (None, None) == (gone, head)

    @promise("stored-9")
    @pytest.mark.requires(Capability.OWN_BLOBS)
    async def test_a_false_blob_in_the_backend_is_an_error(self, open_backend: OpenBackend) -> None:
        """A load whose blob in the backend is missing, or does not match its digest, raises CorruptCheckpointError that
        names the thread, the sequence and the digest.
        """
        body = b'{"whole":{"a":null},"blobs":{"a":"%b"}}' % NAME.encode()
        new = row(0, version="1.9.0", body=body, envelope=GOOD.replace(b"1.7.0", b"1.9.0"))
        backend = open_backend()
        async with RowStore(backend) as store:
            await backend.commit([Commit("t", os.urandom(8), row=new)])
            with pytest.raises(CorruptCheckpointError) as missing:
                await store.load("t")
            await backend.commit([Commit("t", os.urandom(8), row=new, blobs=[(NAME, b'"something else"')])])
            with pytest.raises(CorruptCheckpointError) as false:
                await store.load("t")

        assert ("t", 0) == (missing.value.thread_id, missing.value.sequence)
        assert ("t", 1) == (false.value.thread_id, false.value.sequence)
        assert NAME in str(missing.value)
        assert NAME in str(false.value)

    @promise("stored-10")
    async def test_saves_that_wait_together_are_all_stored(self, open_backend: OpenBackend) -> None:
        """Two hundred saves on as many threads at once are all stored, each under its own ID, whatever batches they
        went in.
        """
        backend = open_backend()
        async with RowStore(backend) as store:
            got = await asyncio.gather(*(store.save(checkpoint(f"t{n}", state={"n": n})) for n in range(200)))
            bodies = [(await backend.read(f"t{n}", None, None))[0].body for n in range(200)]

        assert [0] * 200 == got
        assert [b'{"n":%d}' % n for n in range(200)] == bodies
