"""Each broken store fails the promises that it breaks, by name, and no other."""

import importlib.util
import inspect
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from strata_conformance import RowBackendTests, promises_of

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
AUTHOR = """
import pytest
from mutant_under_test import Backend, Store
from strata_conformance import RowBackendTests

class TestMutant(RowBackendTests):
    @pytest.fixture
    def open_backend(self, clock):
        backend = Backend(clock)
        return lambda: backend

    @pytest.fixture
    def open_store(self, open_backend):
        return lambda **options: Store(open_backend(), **options)
"""
PER_PROMISE = 2
"""How many parameter sets of a promise are run here: enough to tell, and a mutant takes seconds."""


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BACKENDS, STORES = _module("broken_backends"), _module("broken_stores")


class Verdict:
    """Collects the promises that fail, as a pytest plugin."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.passed: set[str] = set()
        self.skipped: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        seen: Counter[str] = Counter()
        kept = []
        for item in items:
            name = getattr(item, "originalname", item.name)
            seen[name] += 1
            if seen[name] <= PER_PROMISE:
                kept.append(item)
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        promise = str(dict(report.user_properties)["promise"])
        if report.failed:
            self.failed.add(promise)
        elif report.skipped:
            self.skipped.add(promise)
        elif report.when == "call":
            self.passed.add(promise)


def judge(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, backend: type, store: type) -> Verdict:
    """Run the suite on a backend under a store."""
    module = ModuleType("mutant_under_test")
    vars(module).update(Backend=backend, Store=store)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    pytester.makepyfile(test_author=AUTHOR)
    verdict = Verdict()
    pytester.inline_run(
        "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", plugins=[verdict]
    )
    return verdict


BROKEN = {
    "KnowsRowsByNumberAlone": "conditional-2 conditional-4 delta-4 lease-14 lease-15 offload-3 row-5 rule-1",
    "ForgetsAllWriteIdsButTheLast": "repeat-2 repeat-3 repeat-4 row-7 rule-1",
    "FindsWriteIdsAnywhere": "repeat-3 row-7",
    "NeverAsksForTheToken": "lease-5 lease-7 lease-8 lease-10 lease-16 lease-17 repeat-5 row-3 row-11 rule-1",
    "CountsTokensByThread": "lease-4 lease-5 lease-16 row-8 rule-1",
    "KeepsLeasesInTheMomentOfExpiry": (
        "conditional-6 lease-3 lease-4 lease-6 lease-7 lease-8 lease-10 lease-18 purge-6 purge-7 "
        "repeat-7 repeat-8 rule-1 stored-7"
    ),
    "IndexesNoMetadata": "list-5 list-10 list-11 row-10 rule-1",
    "ListsToTheCutoffInclusive": "list-6 list-10 purge-1 purge-4 purge-8 rule-1",
    "OrdersAsUtf16": "list-2 row-14",
    "LeavesBlobsBehind": "row-10 rule-1 stored-7",
    "LimitsBeforeItFilters": "purge-6",
    "ReadsWithoutTheWholeRow": (
        "delta-1 delta-2 delta-3 delta-5 delta-6 external-1 external-5 offload-1 row-2 rule-1 stored-1"
    ),
    "FoldsTheCaseOfIds": "input-1 list-2 row-10 row-14 rule-1",
    "TearsCancelledCommits": "cancel-1 cancel-2 cancel-3 cancel-4",
    "HandsOutTheLeaseOfAnother": "repeat-7 repeat-8 rule-1",
    "ReadsTheStateLate": "save-7",
    "SharesWhatItLoads": "save-8",
    "CoercesThreadIds": "argument-9 input-2",
    "DropsTheDecision": "input-6 record-1 record-3 record-9",
    "IgnoresTheGraphVersion": "list-7 list-10",
    "NeverReleasesWithASave": "cancel-3 lease-4 lease-5 lease-11 lease-19 repeat-5",
}


_GOOD: dict[str, Verdict] = {}


@pytest.fixture
def good(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The verdict on the good store, through the wrapper that the mutants use; judged once."""
    if not _GOOD:
        _GOOD["verdict"] = judge(pytester, monkeypatch, BACKENDS.MemoryBackend, STORES.Wrapper)
    return _GOOD["verdict"]


def test_the_good_store_fails_nothing_and_skips_only_refusals(good: Verdict) -> None:
    """Without a mutation nothing fails, and only refusals of what is declared are skipped."""
    every = {promise.id: promise.needs for promise in promises_of(RowBackendTests)}
    refusals = {identity for identity, needs in every.items() if any(need.startswith("no ") for need in needs)}

    assert set() == good.failed
    assert refusals == good.skipped
    assert set(every) - refusals == good.passed


def test_a_store_that_declares_nothing_is_held_to_all_that_needs_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without any capability skips what needs one, and nothing else; its refusals are tested."""
    bare = type("Bare", (BACKENDS.MemoryBackend,), {"capabilities": frozenset()})
    verdict = judge(pytester, monkeypatch, bare, STORES.Wrapper)
    every = {promise.id: promise.needs for promise in promises_of(RowBackendTests)}
    needing = {identity for identity, needs in every.items() if any(not need.startswith("no ") for need in needs)}

    assert set() == verdict.failed
    assert needing == verdict.skipped
    assert set(every) - needing == verdict.passed


@pytest.mark.parametrize("name", BROKEN)
def test_a_mutant_fails_what_it_breaks(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, good: Verdict, name: str
) -> None:
    """The promises that a mutant breaks fail, exactly these, beyond what the good store fails itself."""
    backend = getattr(BACKENDS, name, BACKENDS.MemoryBackend)
    verdict = judge(pytester, monkeypatch, backend, getattr(STORES, name, STORES.RowStore))

    assert set(BROKEN[name].split()) == verdict.failed - good.failed


def test_every_mutant_is_judged() -> None:
    """Each class of the two modules of mutants stands in the table."""
    mutants = {
        name
        for module in (BACKENDS, STORES)
        for name, member in vars(module).items()
        if inspect.isclass(member) and member.__module__ == module.__name__ and name != "Wrapper"
    }

    assert set(BROKEN) == mutants
