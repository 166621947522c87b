"""A row backend against the row boundary's docstrings."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import THREAD_IDS
from strata_conformance.suite._backend import BackendTests, OpenBackend, opened, row
from strata_core.capabilities import Capability
from strata_core.rows import (
    NOTHING,
    WRITE_IDS_KEPT,
    Commit,
    Committed,
    Drop,
    HeadQuery,
    Refusal,
    Refused,
    RowBackend,
    Take,
)

__all__ = ["RowPrimitiveTests"]

HOUR = 3_600_000_000
own_blobs = pytest.mark.requires(Capability.OWN_BLOBS)


async def append(backend: RowBackend, thread_id: str, n: int = 0, **fields: Any) -> Committed | Refused:
    """Append a row without conditions."""
    commit = attrs.evolve(Commit(thread_id, os.urandom(8), row=row(n)), **fields)
    return (await backend.commit([commit]))[0]


class RowPrimitiveTests(BackendTests):
    """One primitive at a time."""

    @promise("row-1")
    async def test_rows_come_back_byte_for_byte(self, open_backend: OpenBackend) -> None:
        """A row comes back byte for byte, with its sequence, its version, the ID of its commit and the whole row it
        builds on, whatever its text is.
        """
        bodies = [
            b"{}",
            b'{"a": 1}',
            b'{"a":1,"a":2}',
            b'{"a":1e400}',
            '{"\u00e9":"\U0001f600"}'.encode(),
            b'{"a":"\\u0000"}',
            b' \t{"a":1}\r\n',
        ]
        bodies += [b'{"n":' + b"9" * 5000 + b"}", b'{"big":"' + b"x" * 2_000_000 + b'"}']
        ids = [os.urandom(8) for _ in bodies]
        async with opened(open_backend()) as backend:
            for n, (body, write_id) in enumerate(zip(bodies, ids, strict=True)):
                await backend.commit([Commit("t", write_id, row=row(n, body=body, envelope=body, whole=n in (0, 3)))])
        async with opened(open_backend()) as backend:
            rows = await backend.read("t", 0, None)

        assert [
            (n, 0 if n < 3 else 3, ids[n], "1.7.0" if n in (0, 3) else "1.8.0", body, body)
            for n, body in enumerate(bodies)
        ] == [(r.sequence, r.whole_at, r.write_id, r.version, r.envelope, r.body) for r in rows]

    @promise("row-2")
    async def test_reads_reach_back_to_the_whole_row(self, open_backend: OpenBackend) -> None:
        """A read returns rows `first` to `last`, preceded by the rows back to the whole row that `first` builds on;
        `first` None is the latest, `last` None or past the end is the latest; nothing when there is no row `first`.
        """
        async with opened(open_backend()) as backend:
            for n in range(10):
                await append(backend, "t", row=row(n, whole=n in (0, 4, 9)))
                await append(backend, "t2", row=row(n))
            asked = [(0, 0), (2, 2), (3, 4), (4, 4), (5, 6), (8, None), (9, 9), (None, None), (7, 99), (None, 99)]
            asked += [(10, None), (10, 12), (2**31 - 1, 2**31 - 1)]
            got = [[r.sequence for r in await backend.read("t", first, last)] for first, last in asked]
            unknown = [list(await backend.read("unknown", first, None)) for first in (None, 0, 5)]

        assert [
            [0],
            [0, 1, 2],
            [0, 1, 2, 3, 4],
            [4],
            [4, 5, 6],
            [4, 5, 6, 7, 8, 9],
            [9],
            [9],
            [4, 5, 6, 7, 8, 9],
            [9],
            [],
            [],
            [],
        ] == got
        assert [[], [], []] == unknown

    @promise("row-3")
    async def test_each_commit_of_a_batch_has_its_own_outcome(self, open_backend: OpenBackend) -> None:
        """A batch answers for each commit, in order; one that is refused changes nothing and takes no other with it."""
        async with opened(open_backend()) as backend:
            await append(backend, "b")
            taken = (await backend.commit([Commit("c", os.urandom(8), lease=Take("o", HOUR))]))[0]
            batch = [
                Commit("a", os.urandom(8), row=row(1)),
                Commit("b", os.urandom(8), after=NOTHING, row=row(2)),
                Commit("c", os.urandom(8), free=True, row=row(3)),
                Commit("d", os.urandom(8), token=99_999_999, row=row(4)),
                Commit("e", os.urandom(8), after=NOTHING, row=row(5), lease=Take("o", HOUR)),
                Commit("b2", os.urandom(8), lease=Drop(), token=5),
                *(Commit(f"many {n}", os.urandom(8), row=row(n)) for n in range(50)),
            ]
            outcomes = await backend.commit(batch)
            heads = [await backend.read_head(thread) for thread in "abcde"]
            empty = await backend.commit([])

        assert isinstance(taken, Committed)
        assert [0, Refusal.CHANGED, Refusal.HELD, Refusal.LOST, 0, Refusal.LOST, *[0] * 50] == [
            outcome.sequence if isinstance(outcome, Committed) else outcome.why for outcome in outcomes
        ]
        assert [0, 0, -1, None, 0] == [None if head is None else head.sequence for head in heads]
        assert [] == list(empty)

    @promise("row-4")
    async def test_a_refusal_shows_the_head_it_was_judged_by(self, open_backend: OpenBackend) -> None:
        """A refusal carries the head it was judged by, with at least its sequence, write IDs, lease, external, closing
        and the backend's time; of an unknown thread, none.
        """
        async with opened(open_backend()) as backend:
            write_id = os.urandom(8)
            done = await backend.commit([Commit("t", write_id, row=row(), external=True, lease=Take("worker", HOUR))])
            refused = await backend.commit([Commit("t", os.urandom(8), lease=Take("o", HOUR))])
            unknown = await backend.commit([Commit("unknown", os.urandom(8), after=3, row=row())])

        assert isinstance(done[0], Committed)
        assert isinstance(refused[0], Refused)
        head = refused[0].head
        assert head is not None
        assert (0, write_id, done[0].token, "worker", done[0].expires, True, False) == (
            head.sequence,
            head.write_ids,
            head.token,
            head.owner,
            head.expires,
            head.external,
            head.closing,
        )
        assert done[0].expires - HOUR <= head.now < done[0].expires
        assert isinstance(unknown[0], Refused)
        assert (Refusal.CHANGED, None) == (unknown[0].why, unknown[0].head)

    @promise("row-5")
    async def test_a_row_is_appended_only_after_the_expected_one(self, open_backend: OpenBackend) -> None:
        """`after` and `after_id` must both be the latest row's: the same sequence under another write ID is another
        row.
        """
        first, second = os.urandom(8), os.urandom(8)
        others = [second[:7] + bytes([second[7] ^ 1]), bytes([second[0] ^ 1]) + second[1:], os.urandom(8)]
        async with opened(open_backend()) as backend:
            await backend.commit([Commit("t", first, row=row(0))])
            await backend.commit([Commit("t", second, after=0, after_id=first, row=row(1))])
            refused = [
                (await backend.commit([Commit("t", os.urandom(8), after=after, after_id=after_id, row=row(9))]))[0]
                for after, after_id in (
                    *((1, first), (0, first), (0, b""), (2, b""), (NOTHING, b"")),
                    *((1, other) for other in others),
                )
            ]
            done = (await backend.commit([Commit("t", os.urandom(8), after=1, after_id=second, row=row(2))]))[0]

        assert [Refusal.CHANGED] * 8 == [outcome.why for outcome in refused if isinstance(outcome, Refused)]
        assert isinstance(done, Committed)
        assert 2 == done.sequence

    @promise("row-6")
    async def test_of_many_commits_at_once_one_wins(self, open_backend: OpenBackend) -> None:
        """Of commits that expect the same row, from two backends at once, exactly one is done."""
        async with opened(open_backend()) as one, opened(open_backend()) as two:
            await append(one, "t")
            calls = [
                (one if n % 2 else two).commit([Commit("t", os.urandom(8), after=0, row=row(n))]) for n in range(20)
            ]
            outcomes = [batch[0] for batch in await asyncio.gather(*calls)]
            rows = await one.read("t", 0, None)

        assert 1 == sum(isinstance(outcome, Committed) for outcome in outcomes)
        assert [0, 1] == [r.sequence for r in rows]

    @promise("row-7")
    async def test_repeated_commits_change_nothing(self, open_backend: OpenBackend) -> None:
        """A commit whose write ID is among the thread's latest eight answers as repeated, with the sequence of its row,
        before any condition, and changes nothing; only whole IDs count.
        """
        ids = [b"aaaabbbb", b"ccccdddd", *(os.urandom(8) for _ in range(6))]
        async with opened(open_backend()) as one, opened(open_backend()) as two:
            for n, write_id in enumerate(ids):
                await one.commit([Commit("t", write_id, row=row(n))])
            before = await one.read_head("t")
            repeated = [
                (await two.commit([Commit("t", write_id, after=NOTHING, token=77, row=row(99))]))[0] for write_id in ids
            ]
            after = await two.read_head("t")
            crossing = [
                (await two.commit([Commit("t", write_id, row=row(8))]))[0]
                for write_id in (b"ddddaaaa", b"ccccaaaa", b"aaaadddd", ids[-1][:7] + bytes([ids[-1][7] ^ 1]))
            ]

        assert [(n, True) for n in range(WRITE_IDS_KEPT)] == [
            (outcome.sequence, outcome.repeated) for outcome in repeated if isinstance(outcome, Committed)
        ]
        assert before is not None
        assert after is not None
        assert attrs.evolve(before, now=0) == attrs.evolve(after, now=0)
        assert [(n, False) for n in range(8, 12)] == [
            (outcome.sequence, outcome.repeated) for outcome in crossing if isinstance(outcome, Committed)
        ]

    @promise("row-12")
    @own_blobs
    async def test_blobs_come_back_by_thread_and_digest(self, open_backend: OpenBackend) -> None:
        """The thread's own blobs come back byte for byte, those that are asked for and there; the same blob may come
        again with another row.
        """
        names = ["sha256:" + letter * 64 for letter in "abc"]
        contents = [b"", bytes(range(256)), b"z" * 1_000_000]
        async with opened(open_backend()) as backend:
            await append(backend, "t", blobs=list(zip(names, contents, strict=True)))
            await append(backend, "t", blobs=[(names[0], contents[0])])
            await append(backend, "other", blobs=[(names[0], contents[0])])
        async with opened(open_backend()) as backend:
            everything = dict(await backend.read_blobs("t", names))
            some = dict(await backend.read_blobs("t", {names[1], "sha256:" + "0" * 64}))
            none = dict(await backend.read_blobs("t", []))
            foreign = dict(await backend.read_blobs("other", names))

        assert dict(zip(names, contents, strict=True)) == everything
        assert {names[1]: contents[1]} == some
        assert {} == none
        assert {names[0]: b""} == foreign

    @promise("row-13")
    @own_blobs
    async def test_a_refused_commit_stores_no_blob(self, open_backend: OpenBackend) -> None:
        """A refused or repeated commit stores none of its blobs."""
        name, write_id = "sha256:" + "a" * 64, os.urandom(8)
        async with opened(open_backend()) as backend:
            await append(backend, "t", write_id=write_id)
            await append(backend, "t", after=5, blobs=[(name, b"x")])
            await append(backend, "t", write_id=write_id, blobs=[(name, b"x")])
            got = dict(await backend.read_blobs("t", [name]))

        assert {} == got

    @promise("row-14")
    async def test_thread_ids_are_opaque(self, open_backend: OpenBackend) -> None:
        """Threads whose IDs differ in any way are kept apart, and listed in the order of their UTF-8 bytes."""
        async with opened(open_backend()) as backend:
            outcomes = await backend.commit(
                [Commit(thread, os.urandom(8), row=row(n, updated=5)) for n, thread in enumerate(THREAD_IDS)]
            )
            rows = [await backend.read(thread, None, None) for thread in THREAD_IDS]
            oldest = [h.thread_id for h in await backend.list_heads(HeadQuery(oldest_first=True, limit=1000))]
            newest = [h.thread_id for h in await backend.list_heads(HeadQuery(limit=1000))]

        assert [0] * len(THREAD_IDS) == [o.sequence for o in outcomes if isinstance(o, Committed)]
        assert [b'{"n":%d}' % n for n in range(len(THREAD_IDS))] == [r[0].body for r in rows]
        assert sorted(THREAD_IDS, key=str.encode) == oldest == newest[::-1]
