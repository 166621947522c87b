"""Random programs against a plain model, shrunk to the shortest that fails."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final

import attrs
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from strata_conformance._promise import promise
from strata_conformance._samples import BASE
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._driver import Driver, RememberedBlobs
from strata_conformance.suite._programs import (
    DAY,
    OWNER,
    TTLS,
    Content,
    contents,
    expectations,
    handles,
    names,
    options,
    thread_states,
    writes,
)
from strata_core.capabilities import Capability
from strata_core.records import (
    Lease,
    LogEntry,
    ThreadQuery,
    ThreadState,
)
from strata_core.testing import FakeClock

__all__ = ["ModelTests"]

DEFAULT_EXAMPLES: Final = 100
PHASES: Final = (Phase.generate, Phase.shrink)


class Machine(Driver):
    """The calls of a random program."""

    @initialize(one=options, two=options, external=st.booleans())
    def open(self, one: dict[str, bool], two: dict[str, bool], external: bool) -> None:
        self._blobs = RememberedBlobs() if external else None
        self._open("one", one)
        self._open("two", two)

    @rule(handle=handles, name=names, content=contents, again=writes)
    def save(self, handle: str, name: str, content: Content, again: int) -> None:
        checkpoint, write_id = self._checkpoint(name, content), self._write(again)
        self._check(
            handle,
            "save",
            lambda: self._model.save(checkpoint, write_id),
            checkpoint,
            write_id=write_id,
        )

    @rule(handle=handles, name=names, several=st.lists(contents, min_size=2, max_size=4))
    def save_several(self, handle: str, name: str, several: list[Content]) -> None:
        for content in several:
            self.save(handle, name, content, 0)

    @rule(handle=handles, name=names, content=contents, again=writes, kind=expectations, unleased=st.booleans())
    def save_if_latest(self, handle: str, name: str, content: Content, again: int, kind: str, unleased: bool) -> None:
        checkpoint, write_id, expected = self._checkpoint(name, content), self._write(again), self._expected(name, kind)
        self._check(
            handle,
            "save_if_latest",
            lambda: self._model.save(checkpoint, write_id, expected=expected, unleased=unleased),
            checkpoint,
            expected,
            unleased=unleased,
            write_id=write_id,
        )

    @rule(
        handle=handles,
        which=st.integers(0, 3),
        content=contents,
        again=writes,
        kind=st.one_of(st.just("any"), expectations),
        release=st.booleans(),
    )
    def save_under_lease(self, handle: str, which: int, content: Content, again: int, kind: str, release: bool) -> None:
        lease = self._lease(which)
        name = lease.thread_id.split(":", 1)[1]
        checkpoint, write_id, expected = self._checkpoint(name, content), self._write(again), self._expected(name, kind)
        self._check(
            handle,
            "save_under_lease",
            lambda: self._model.save(checkpoint, write_id, expected=expected, lease=lease, release=release),
            checkpoint,
            lease,
            expected=expected,
            release=release,
            write_id=write_id,
        )

    @rule(
        handle=handles,
        name=names,
        ttl=st.sampled_from(TTLS),
        content=st.none() | contents,
        again=writes,
        kind=st.one_of(st.just("any"), expectations),
    )
    def acquire(self, handle: str, name: str, ttl: timedelta, content: Content | None, again: int, kind: str) -> None:
        thread_id = self._id(name)
        save = None if content is None else self._checkpoint(name, content)
        write_id, expected = self._write(again), self._expected(name, kind)
        asked: dict[str, Any] = {"owner": OWNER, "ttl": ttl, "save": save, "expected": expected}

        def predicted() -> Lease | None:
            return self._model.acquire(thread_id, write_id, **asked)

        lease = self._check(handle, "acquire_lease", predicted, thread_id, **asked, write_id=write_id)
        if isinstance(lease, Lease) and lease.token not in {known.token for known in self._leases}:
            if lease.token <= self._model.largest_token(thread_id):
                self._script.fail("a larger token than all before on the thread", lease.token)
            self._model.was_given(thread_id, lease.token)
            self._leases.append(lease)

    @rule(handle=handles, which=st.integers(0, 3), ttl=st.sampled_from(TTLS))
    def renew(self, handle: str, which: int, ttl: timedelta) -> None:
        lease = self._lease(which)
        self._check(handle, "renew_lease", lambda: self._model.renew(lease, ttl), lease, ttl=ttl)

    @rule(handle=handles, which=st.integers(0, 3))
    def release(self, handle: str, which: int) -> None:
        lease = self._lease(which)
        self._check(handle, "release_lease", lambda: self._model.release(lease), lease)

    @precondition(lambda self: not self._has(Capability.SERVER_CLOCK))
    @rule(seconds=st.sampled_from([1, 10, 60]))
    def wait(self, seconds: int) -> None:
        self._script.note(f"clock.advance({seconds})")
        self._clock.advance(seconds)

    @rule(handle=handles, name=names, at=st.none() | st.integers(0, 9))
    def load(self, handle: str, name: str, at: int | None) -> None:
        self._load(handle, name, at)

    @rule(handle=handles, name=names)
    def live_lease(self, handle: str, name: str) -> None:
        thread_id = self._id(name)
        self._check(handle, "live_lease", lambda: self._model.live(thread_id), thread_id)

    @precondition(lambda self: self._has(Capability.QUERY))
    @rule(handle=handles, name=names, start=st.integers(0, 6), limit=st.integers(1, 4))
    def get_log(self, handle: str, name: str, start: int, limit: int) -> None:
        thread_id = self._id(name)

        def predicted() -> tuple[list[LogEntry], int | None]:
            log = self._model.log(thread_id)
            return log[start : start + limit], start + limit if len(log) > start + limit else None

        self._check(handle, "get_log", predicted, thread_id, start=start, limit=limit)

    @precondition(lambda self: self._has(Capability.QUERY))
    @rule(
        handle=handles,
        wanted=st.none() | st.none() | thread_states,
        color=st.sampled_from([None, None, None, "red", "Red"]),
        after=st.sampled_from([None, None, None, 0, 1]),
        before=st.sampled_from([None, None, None, 2, 3]),
        version=st.sampled_from([None, None, "1", "2"]),
        due=st.sampled_from([None, None, None, 1, 2]),
        leased=st.sampled_from([None, None, True, False]),
        limit=st.integers(1, 3),
        oldest_first=st.booleans(),
    )
    def list_threads(
        self,
        handle: str,
        wanted: set[ThreadState] | None,
        color: str | None,
        after: int | None,
        before: int | None,
        version: str | None,
        due: int | None,
        leased: bool | None,
        limit: int,
        oldest_first: bool,
    ) -> None:
        query = ThreadQuery(
            states=wanted,
            metadata={"run": self._run} | ({} if color is None else {"color": color}),
            updated_after=None if after is None else BASE + after * DAY,
            updated_before=None if before is None else BASE + before * DAY,
            graph_id=None if version is None else "graph",
            graph_version=version,
            due_before=None if due is None else BASE + due * DAY,
            leased=leased,
            limit=limit,
            oldest_first=oldest_first,
        )
        found = self._model.listed(query)
        for start in range(0, len(found) or 1, limit):
            page = [
                (e.checkpoint.thread_id, e.sequence, e.checkpoint.state, self._model.live(e.checkpoint.thread_id))
                for e in found[start : start + limit]
            ]
            expected = (page, start + limit < len(found))
            got = self._check(handle, "list_threads", partial(tuple, expected), query)
            query = attrs.evolve(query, cursor=getattr(got, "next_cursor", None))

    @precondition(lambda self: self._has(Capability.RETENTION))
    @rule(handle=handles, day=st.integers(0, 4), wanted=thread_states, limit=st.integers(1, 3))
    def purge(self, handle: str, day: int, wanted: set[ThreadState], limit: int) -> None:
        cutoff = BASE + day * DAY + timedelta(seconds=1)
        self._check(
            handle,
            "purge",
            lambda: self._model.purge(cutoff, wanted, limit),
            cutoff,
            states=wanted,
            limit=limit,
        )

    @rule(handle=handles, with_options=options)
    def reopen(self, handle: str, with_options: dict[str, bool]) -> None:
        self._close(handle)
        self._open(handle, with_options)


class ModelTests(PortTests):
    """Random programs, whose outcomes a plain model predicts."""

    @promise("model-1")
    def test_any_program_comes_out_as_the_model_says(
        self, open_store: OpenStore, clock: FakeClock, request: pytest.FixtureRequest
    ) -> None:
        """Whatever is called in whatever order, from several handles with whatever options: every sequence, checkpoint,
        lease, page, slice, number and error is what a plain model of these promises comes to.
        """
        soak = bool(os.environ.get("STRATA_SOAK"))
        seeded = request.config.getoption("--hypothesis-seed", None) is not None
        chosen = settings().max_examples != DEFAULT_EXAMPLES  # by a profile of the author's
        with _quiet(logging.getLogger("strata_core")):
            run_state_machine_as_test(
                lambda: Machine(open_store, clock),  # type: ignore[arg-type]  # it takes any factory
                settings=settings(
                    max_examples=2000 if soak else settings().max_examples if chosen else 30,
                    stateful_step_count=50 if soak else 25,
                    derandomize=not (soak or seeded or chosen),
                    phases=PHASES,
                    database=None,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                    print_blob=False,
                ),
            )


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep warnings out of the report of a failure: hundreds of programs give cause to them, and one is shown."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
