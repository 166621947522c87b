"""Each broken store fails the promise that it breaks, and no other that the same broken rule does not break too."""

import asyncio
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from types import ModuleType
from typing import Any

import mutants_blobs
import mutants_cancellation
import mutants_conditional
import mutants_corners
import mutants_encoding
import mutants_expiry
import mutants_external
import mutants_filters
import mutants_inputs
import mutants_lease_corners
import mutants_leased_saves
import mutants_leases
import mutants_lifecycle
import mutants_listing
import mutants_log
import mutants_records
import mutants_repeats
import mutants_retention
import mutants_row_leases
import mutants_rows
import mutants_saves
import mutants_setup
import mutants_stored
import pytest
from hypothesis import Phase
from mutant_kit import MUTANTS, Blobs, Mutant, Restless, Wrapper

from strata_conformance import (
    Footprint,
    OpenBackend,
    OpenBlobs,
    OpenExpiringBackend,
    OpenExpiringStore,
    OpenStore,
    promises_of,
)
from strata_conformance.suite import CLASSES, BlobStoreTests, _machine
from strata_conformance.suite._backend import BackendTests
from strata_conformance.suite._base import PortTests, SuiteTests
from strata_core.memory import MemoryBackend
from strata_core.store import RowStore
from strata_core.testing import FakeClock

pytest_plugins = ["pytester"]

FILES = (
    mutants_blobs, mutants_cancellation, mutants_conditional, mutants_corners, mutants_encoding,
    mutants_expiry, mutants_external, mutants_filters, mutants_inputs, mutants_lease_corners,
    mutants_leased_saves, mutants_leases, mutants_lifecycle, mutants_listing, mutants_log, mutants_records,
    mutants_repeats, mutants_retention, mutants_row_leases, mutants_rows, mutants_saves, mutants_setup,
    mutants_stored,
)  # fmt: skip
ELSEWHERE = ("lost", "retry", "damage", "size", "process")
"""Subjects whose promises are broken in `test_faults.py`."""
OWNERS = {
    promise.id: tests
    for tests in CLASSES
    for promise in promises_of(tests)
    if promise.id.split("-")[0] not in ELSEWHERE
}
PROMISES = {promise.id: promise for tests in CLASSES for promise in promises_of(tests) if promise.id in OWNERS}
BLOBS = [identity for identity, owner in OWNERS.items() if owner is BlobStoreTests]
PORTS = [identity for identity, owner in OWNERS.items() if issubclass(owner, PortTests)]
ROWS = [identity for identity in OWNERS if identity not in BLOBS]
UMBRELLA = "model-1"
"""A promise that says once more what all others do: a mutant of another one may break it."""
EVERYTHING = "STRATA_SOAK" in os.environ
SAMPLE = 3
"""How many promises that a mutant must keep are tried on it here; with STRATA_SOAK, all."""
PER_PROMISE = 2
"""How many parameter sets of each of those are tried: enough to tell.  Of what it breaks, all are."""


def author_of(name: str, promises: Iterable[str], broken: type) -> type:
    """Return a class with the tests of these promises, and nothing else of their classes but what these need."""

    class Author:
        """What the author of the broken store writes."""

        in_memory = not issubclass(broken, mutants_setup.Kept)

        @pytest.fixture
        def footprint(self, backend: MemoryBackend) -> Footprint:
            return lambda: dict(getattr(backend, "things", {}))

        @pytest.fixture
        def backend(self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> MemoryBackend:
            monkeypatch.setattr(_machine, "PHASES", (Phase.generate,))  # to fail is enough here
            backend = broken(clock) if issubclass(broken, MemoryBackend) else MemoryBackend(clock)
            if isinstance(backend, mutants_stored.Core):
                monkeypatch.setattr(*backend.replaced)
            assert isinstance(backend, MemoryBackend)
            return backend

        @pytest.fixture
        def open_backend(self, backend: MemoryBackend) -> OpenBackend:
            return lambda: backend

        @pytest.fixture
        def open_store(self, backend: MemoryBackend) -> OpenStore:
            store = broken if issubclass(broken, Wrapper) else Wrapper
            return lambda **options: store(backend, **options)

        @pytest.fixture
        def open_expiring_backend(self, backend: MemoryBackend) -> OpenExpiringBackend | None:
            return backend.expiring if isinstance(backend, mutants_expiry.Expiring) else None

        @pytest.fixture
        def open_expiring_store(self, backend: MemoryBackend) -> OpenExpiringStore | None:
            if not isinstance(backend, mutants_expiry.Expiring):
                return None
            return lambda ttl, **options: RowStore(backend.expiring(ttl), **options)

        @pytest.fixture
        def open_blank_store(self, open_store: OpenStore) -> OpenStore:
            return open_store

        @pytest.fixture
        def open_blobs(self) -> OpenBlobs:
            storage: dict[str, dict[str, tuple[bytes, datetime]]] = {}
            return lambda: broken(storage)

    base = (
        BackendTests if issubclass(broken, MemoryBackend) else PortTests if issubclass(broken, Wrapper) else SuiteTests
    )
    members: dict[str, Any] = {}
    for owner in dict.fromkeys(OWNERS[identity] for identity in promises):
        members |= {key: value for key, value in vars(owner).items() if not key.startswith(("test_", "__"))}
    members |= {PROMISES[identity].test: vars(OWNERS[identity])[PROMISES[identity].test] for identity in promises}
    members |= {key: value for key, value in vars(Author).items() if not key.startswith("__")}
    return type(f"Test{name}", (base,), members)


class Verdict:
    """Collects what fails of each class, as a pytest plugin.

    Attributes:
        failed: Promises by the name of the class.
        errors: As `failed`: those whose test was not even reached, or not left in order, as when a fixture raises.
        passed: As `failed`.
        skipped: As `failed`.
    """

    def __init__(self) -> None:
        self.failed: dict[str, set[str]] = defaultdict(set)
        self.errors: dict[str, set[str]] = defaultdict(set)
        self.passed: dict[str, set[str]] = defaultdict(set)
        self.skipped: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        seen: Counter[tuple[str, str]] = Counter()
        kept = []
        for item in items:
            name, promise = _identity(item)
            seen[name, promise] += 1
            is_broken = name in MUTANTS and promise in {MUTANTS[name].promise, *MUTANTS[name].also}
            if is_broken or seen[name, promise] <= PER_PROMISE:
                kept.append(item)
        items[:] = kept

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        name, promise = _identity(item)
        if call.excinfo is not None:
            is_skip = call.excinfo.errisinstance(pytest.skip.Exception)
            found = self.skipped if is_skip else self.failed if call.when == "call" else self.errors
            found[name].add(promise)
        elif call.when == "call":
            self.passed[name].add(promise)


def _identity(item: Any) -> tuple[str, str]:
    return item.cls.__name__.removeprefix("Test"), item.function.__strata_promise__.id


def judge(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, classes: Sequence[type]) -> Verdict:
    """Run classes of tests as an author's file, in one go."""
    module = ModuleType("classes_under_test")
    vars(module).update({tests.__name__: tests for tests in classes})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    pytester.makepyfile(test_author="from classes_under_test import *")
    verdict = Verdict()
    pytester.inline_run(
        "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", plugins=[verdict]
    )
    return verdict


def _promises_tried_on(number: int, mutant: Mutant) -> list[str]:
    broken = mutant.broken
    every = BLOBS if issubclass(broken, Blobs) else PORTS if issubclass(broken, Wrapper) else ROWS
    if EVERYTHING:
        return [identity for identity in every if identity == mutant.promise or identity != UMBRELLA]
    others = [identity for identity in every if identity not in {mutant.promise, UMBRELLA, *mutant.also}]
    sample = [others[(number * SAMPLE + n) % len(others)] for n in range(min(SAMPLE, len(others)))]
    return [mutant.promise, *sorted(mutant.also)[:2], *sample]


_VERDICTS: list[Verdict] = []


@pytest.fixture
def verdict(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The verdict on all mutants, reached once."""
    if not _VERDICTS:
        monkeypatch.setattr(asyncio.events, "new_event_loop", Restless)  # some mutants hang
        classes = [
            author_of(name, _promises_tried_on(number, mutant), mutant.broken)
            for number, (name, mutant) in enumerate(MUTANTS.items())
        ]
        _VERDICTS.append(judge(pytester, monkeypatch, classes))
    return _VERDICTS[0]


def test_the_good_store_fails_nothing_and_skips_only_refusals(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a mutation nothing fails, and only refusals of what is declared are skipped."""
    verdict = judge(pytester, monkeypatch, [author_of("Good", ROWS, mutants_expiry.Expiring)])
    refusals = {identity for identity in ROWS if any(need.startswith("no ") for need in PROMISES[identity].needs)}

    assert set() == verdict.failed["Good"] | verdict.errors["Good"]
    assert refusals == verdict.skipped["Good"]
    assert set(ROWS) - refusals == verdict.passed["Good"]


def test_the_good_blob_store_fails_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a mutation no promise of a blob store is broken."""
    verdict = judge(pytester, monkeypatch, [author_of("Good", BLOBS, Blobs)])

    assert set() == verdict.failed["Good"] | verdict.errors["Good"]
    assert set(BLOBS) == verdict.passed["Good"]


def test_a_store_that_declares_nothing_is_held_to_all_that_needs_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without any capability skips what needs one, and nothing else; its refusals are tested."""
    bare = type("Bare", (mutants_setup.Kept,), {"capabilities": frozenset()})
    verdict = judge(pytester, monkeypatch, [author_of("Bare", ROWS, bare)])
    needing = {identity for identity in ROWS if any(not n.startswith("no ") for n in PROMISES[identity].needs)}

    assert set() == verdict.failed["Bare"] | verdict.errors["Bare"]
    assert needing == verdict.skipped["Bare"]
    assert set(ROWS) - needing == verdict.passed["Bare"]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fails_what_it_breaks(verdict: Verdict, name: str) -> None:
    """The promise that a mutant is there to break fails, and of the others only those that the table names."""
    mutant = MUTANTS[name]
    expected = {mutant.promise} | mutant.also

    assert set() == verdict.errors[name], "a fixture failed, and no test"
    assert {mutant.promise} == {mutant.promise} & verdict.failed[name]
    assert set() == verdict.failed[name] - expected
    assert set() == expected & verdict.passed[name] - verdict.failed[name]


@pytest.mark.parametrize("name", MUTANTS)
def test_what_else_a_mutant_breaks_has_a_reason(name: str) -> None:
    """Each promise that the table names beside the one that the mutant is there for is another, with a reason."""
    mutant = MUTANTS[name]

    assert set() == mutant.also - set(PROMISES)
    assert mutant.promise not in mutant.also
    assert [] == [identity for identity, reason in mutant.reasons.items() if len(reason.split()) < 3]


def test_every_promise_has_a_mutant() -> None:
    """No promise of the contract is without a store that breaks it, and no mutant is without a promise."""
    assert {mutant.promise for mutant in MUTANTS.values()} == set(PROMISES)


def test_every_mutant_is_judged() -> None:
    """Each class of the files of mutants stands in the table, or is the base of one that does."""
    bases = {base for mutant in MUTANTS.values() for base in mutant.broken.__mro__}
    made = {
        member
        for file in FILES
        for member in vars(file).values()
        if isinstance(member, type) and member.__module__ == file.__name__ and not member.__name__.startswith("_")
    }

    assert set() == made - bases
