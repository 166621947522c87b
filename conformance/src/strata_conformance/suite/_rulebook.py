"""A row backend against core's `decide`, with random commits."""

from __future__ import annotations

import os
import random
from typing import Any, Final

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance.suite._backend import BackendTests, Model, OpenBackend, opened, row
from strata_core.capabilities import Capability
from strata_core.clock import micros
from strata_core.rows import (
    ANY,
    NOTHING,
    Commit,
    Committed,
    Drop,
    Extend,
    Head,
    HeadQuery,
    Refused,
    RowBackend,
    Take,
)
from strata_core.testing import FakeClock

__all__ = ["RuleBookTests"]

HOUR: Final = 3_600_000_000
SLACK: Final = 30_000_000
"""Microseconds by which a server's clock may have moved between two looks at it."""
THREADS: Final = ["a", "A", "\u00e9", "\uffff", "\U0001f600"]
STATE_SETS: Final = [
    frozenset({"running"}),
    frozenset({"resumed"}),
    frozenset({"completed", "resumed", "running"}),
    frozenset[str](),
]
PARTS: Final = [(None, None), (1, 2), (3, 3)]
"""Which rows of a thread are read, beside all of them."""
PROGRAMS: Final = 60 if os.environ.get("STRATA_SOAK") == "1" else 8
"""How many random programs are run: each costs a server some thousand round trips, and the mutants need few."""
DIGESTS: Final = ["sha256:" + letter * 64 for letter in "abc"]


class _Program:
    """Random commits on a few threads, most of them likely to be done."""

    def __init__(self, seed: int, model: Model, capabilities: frozenset[Capability]) -> None:
        self.rng = random.Random(seed)
        self._model = model
        self._tokens: dict[str, list[int]] = {}
        self._ids: dict[str, list[bytes]] = {}
        self._own_blobs = Capability.OWN_BLOBS in capabilities
        self._count = 0

    def batch(self) -> list[Commit]:
        """Return the next batch."""
        threads = self.rng.sample(THREADS, self.rng.choice([1, 1, 2, 5]))
        return [self._commit(thread) for thread in threads]

    def _commit(self, thread_id: str) -> Commit:
        rng, head = self.rng, self._model.heads.get(thread_id)
        self._count += 1
        ids = self._ids.setdefault(thread_id, [])
        write_id = rng.choice(ids[-12:]) if ids and rng.random() < 0.15 else rng.randbytes(8)
        commit = Commit(thread_id, write_id)
        if rng.random() < 0.6:
            fields: dict[str, Any] = {
                "updated": rng.choice([5, 6, 7, 1_000_000 + self._count]),
                "status": (status := rng.choice(["running", "interrupted", "completed"])),
                "state": rng.choice([status, "resumed"]),
                "due": rng.choice([None, 5, 10, 2**50]),
                "graph_id": rng.choice([None, "g", "h"]),
                "graph_version": rng.choice([None, "1", "2"]),
                "metadata": rng.choice([{}, {"k": "v"}, {"k": "w", "%": "_"}, {"k": "v", "l": ""}]),
            }
            whole = head is None or head.sequence == NOTHING or rng.random() < 0.4
            commit.row = row(self._count, whole=whole, **fields)
            if self._own_blobs and rng.random() < 0.3:
                commit.blobs = [(d, d.encode()) for d in rng.sample(DIGESTS, rng.randrange(1, 3))]
        if rng.random() < 0.4:
            self._expect(commit, head)
        if rng.random() < 0.3:
            commit.token = self._a_token(thread_id, head)
        elif rng.random() < 0.2:
            commit.free = True
        commit.external = rng.random() < 0.1
        self._lease(commit)
        if commit.row is None and rng.random() < 0.25:
            commit.erase = True
        ids.append(write_id)
        return commit

    def _expect(self, commit: Commit, head: Head | None) -> None:
        sequence = NOTHING if head is None else head.sequence
        commit.after = self.rng.choice([sequence, sequence, sequence, sequence + 1, 0, NOTHING, ANY])
        if commit.after >= 0 and self.rng.random() < 0.6:
            commit.after_id = head.write_ids[:8] if head and self.rng.random() < 0.8 else self.rng.randbytes(8)

    def _a_token(self, thread_id: str, head: Head | None) -> int:
        if head is not None and head.token and self.rng.random() < 0.8:
            return head.token
        return self.rng.choice([*self._tokens.get(thread_id, []), 2**40])

    def _lease(self, commit: Commit) -> None:
        roll, ttl = self.rng.random(), self.rng.choice([1, HOUR, HOUR])
        if commit.token:
            commit.lease = Extend(ttl) if roll < 0.3 else Drop() if roll < 0.6 else None
        elif roll < 0.3:
            commit.free = True
            closing = commit.row is None and self.rng.random() < 0.3
            commit.lease = Take(self.rng.choice(["o", "p\u00e9", ""]), ttl, closing)
            commit.erase = closing and self.rng.random() < 0.7

    def learn(self, thread_id: str, token: int) -> None:
        """Remember a token that was handed out."""
        self._tokens.setdefault(thread_id, []).append(token)

    def newest(self, thread_id: str) -> int:
        """Return the largest token that was handed out for a thread."""
        return max(self._tokens.get(thread_id, [0]))

    def query(self) -> HeadQuery:
        """Return a random listing."""
        rng = self.rng
        return HeadQuery(
            states=rng.choice([None, None, *STATE_SETS]),
            metadata=rng.choice([{}, {}, {"k": "v"}, {"%": "_"}, {"l": ""}, {"none": "x"}]),
            updated_after=rng.choice([None, None, 5, 6]),
            updated_before=rng.choice([None, None, 7, 1_000_010]),
            graph_id=rng.choice([None, None, "g"]),
            graph_version=rng.choice([None, None, "1"]),
            due_until=rng.choice([None, None, 5, 9, 10]),
            leased=rng.choice([None, None, True, False]),
            rowless=rng.random() < 0.2,
            oldest_first=rng.random() < 0.5,
            past=rng.choice([None, (6, "a"), (6, "\u00e9"), (5, "")]),
            limit=rng.choice([1, 2, 1000]),
        )


def _plain(head: Head | None) -> dict[str, Any] | None:
    return None if head is None else attrs.asdict(head) | {"metadata": dict(head.metadata), "now": 0, "envelope": b""}


class RuleBookTests(BackendTests):
    """Every outcome follows `decide`, and everything that is read follows from the outcomes."""

    @promise("rule-1")
    @pytest.mark.parametrize("seed", range(PROGRAMS))
    async def test_random_commits_come_out_as_the_rule_book_says(
        self, open_backend: OpenBackend, clock: FakeClock, seed: int
    ) -> None:
        """For any sequence of commits, from two backends, every outcome, head, row, blob and listing is what core's
        `decide` makes of it.
        """
        model = Model()
        async with opened(open_backend()) as one, opened(open_backend()) as two:
            server = Capability.SERVER_CLOCK in one.capabilities
            program = _Program(seed, model, one.capabilities)
            for step in range(80):
                batch = program.batch()
                await self._step(program.rng.choice([one, two]), batch, program, model, None if server else clock)
                if not server:
                    clock.advance(program.rng.choice([0.000_001, 0.000_001, 0.001, 7200.0 if step % 9 == 0 else 0.0]))
                for commit in batch:
                    await self._compare(
                        program.rng.choice([one, two]), commit.thread_id, model, program.rng.choice(PARTS)
                    )
                if step % 8 == 7:
                    now = await self._now(one, model, None if server else clock)
                    await self._compare_listings(program.rng.choice([one, two]), program, model, now)

    async def _step(
        self, backend: RowBackend, batch: list[Commit], program: _Program, model: Model, clock: FakeClock | None
    ) -> None:
        own = [attrs.evolve(commit, row=commit.row and attrs.evolve(commit.row)) for commit in batch]
        outcomes = await backend.commit(own)  # what a backend does to its commits must not change what is expected
        assert len(batch) == len(outcomes)
        now = await self._now(backend, model, clock)
        for commit, got in zip(batch, outcomes, strict=True):
            token = 0
            if isinstance(got, Committed) and type(commit.lease) is Take and not got.repeated:
                token = got.token
                assert token > program.newest(commit.thread_id), f"the token of {commit} is not new"
                program.learn(commit.thread_id, token)
            expected = model.commit(commit, now, token)
            if isinstance(expected, Refused):
                assert isinstance(got, Refused), f"{commit} was done, not refused as {expected.why}"
                assert expected.why is got.why, commit
                continue
            assert isinstance(got, Committed), f"{commit} was refused as {got.why}"
            if clock is None and not expected.repeated and abs(got.expires - expected.expires) < SLACK:
                expected.expires = got.expires
                if expected.head is not None:
                    expected.head.expires = got.expires
            assert (expected.sequence, expected.token, expected.expires, expected.repeated) == (
                got.sequence,
                got.token,
                got.expires,
                got.repeated,
            ), commit

    @staticmethod
    async def _now(backend: RowBackend, model: Model, clock: FakeClock | None) -> int:
        if clock is not None:
            return micros(clock.now())
        for known in model.heads:  # any head that this batch has not erased tells the backend's time
            if (head := await backend.read_head(known)) is not None:
                return head.now
        probe = Commit("probe of the clock", b"the time", lease=Take("probe", HOUR))
        await backend.commit([probe])
        head = await backend.read_head(probe.thread_id)
        assert head is not None
        await backend.commit([Commit(probe.thread_id, b"drop it.", token=head.token, lease=Drop())])
        return head.now

    @staticmethod
    async def _compare(backend: RowBackend, thread_id: str, model: Model, part: tuple[int | None, int | None]) -> None:
        assert _plain(model.heads.get(thread_id)) == _plain(await backend.read_head(thread_id))
        for first, last in ((0, None), part):
            assert model.read(thread_id, first, last) == list(await backend.read(thread_id, first, last))
        if Capability.OWN_BLOBS in backend.capabilities:
            assert model.blobs.get(thread_id, {}) == dict(await backend.read_blobs(thread_id, DIGESTS))

    @staticmethod
    async def _compare_listings(backend: RowBackend, program: _Program, model: Model, now: int) -> None:
        for _ in range(10):
            query = program.query()
            got = list(await backend.list_heads(query))
            expected = model.list_heads(query, now)
            assert [(_plain(h), h.envelope) for h in expected] == [(_plain(h), h.envelope) for h in got], query
            assert all(abs(head.now - now) <= SLACK for head in got)
