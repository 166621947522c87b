"""CONTRACT.md and the tests say the same, both ways."""

import itertools
from pathlib import Path

import pytest

from strata_conformance import Promise, promise, promises_of
from strata_conformance._contract import collect, render
from strata_conformance.suite import CLASSES, RowBackendTests, StoreTests

CONTRACT = Path(__file__).parents[1] / "CONTRACT.md"


def test_the_contract_lists_every_promise_that_a_test_proves_and_no_other() -> None:
    """Each promise stands in CONTRACT.md with the sentence, the section and the capabilities of its test."""
    assert render(collect(CLASSES)) == CONTRACT.read_text()


def test_every_test_proves_a_promise() -> None:
    """No test of the suite is without an ID, so none is outside the contract."""
    tests = {name for tests in CLASSES for base in tests.__mro__ for name in vars(base) if name.startswith("test_")}

    assert tests == {promise.test for promises in collect(CLASSES).values() for promise in promises}


def test_the_classes_that_authors_subclass_hold_every_promise_of_their_door() -> None:
    """A store is held to all port promises, a row backend to those and to all of the row boundary."""
    every = {promise.id for promises in collect(CLASSES).values() for promise in promises}
    rows = {identity for identity in every if identity.split("-")[0] in ("row", "rule", "stored", "damage", "retry")}
    blobs = {identity for identity in every if identity.startswith("blob-")}

    assert every - rows - blobs == {promise.id for promise in promises_of(StoreTests)}
    assert every - blobs == {promise.id for promise in promises_of(RowBackendTests)}


def test_ids_of_a_subject_are_counted_without_gaps() -> None:
    """The promises of a subject are numbered 1, 2, 3 and so on, whichever classes they stand in."""
    subjects: dict[str, list[int]] = {}
    for found in itertools.chain.from_iterable(collect(CLASSES).values()):
        subject, number = found.id.rsplit("-", 1)
        subjects.setdefault(subject, []).append(int(number))

    assert {subject: list(range(1, len(numbers) + 1)) for subject, numbers in subjects.items()} == {
        subject: sorted(numbers) for subject, numbers in subjects.items()
    }


class First:
    @promise("twice-1")
    def test_one(self) -> None:
        """Something is promised."""


class Second:
    @promise("twice-1")
    def test_two(self) -> None:
        """Something else is promised."""


class Silent:
    @promise("silent-1")
    def test_nothing(self) -> None:
        pass


def test_two_promises_cannot_share_an_id() -> None:
    """An ID that is given twice is an error that names it."""
    assert [Promise("twice-1", "Something is promised.", "test_one")] == list(promises_of(First))
    with pytest.raises(ValueError, match="twice-1"):
        collect([First, Second])


def test_a_promise_needs_a_sentence() -> None:
    """A test without a docstring promises nothing, and is refused."""
    with pytest.raises(ValueError, match="silent-1"):
        collect([Silent])
