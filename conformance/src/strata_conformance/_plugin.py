"""The pytest plugin: markers, a header line, the promise and the calls beside each failure, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

from strata_conformance._contract import CONTRACT
from strata_conformance._verdict import Judge, Outcome, Promised, rows, was_run

__all__: list[str] = []

_JUDGE: Final = pytest.StashKey[Judge]()
_PROMISED: Final = pytest.StashKey[Promised | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--strata-json``."""
    group = parser.getgroup("strata", "Strata conformance")
    group.addoption(
        "--strata-json", metavar="FILE", default=None, help="write the verdicts of the Strata suite, promise by promise"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, so that ``--strict-markers`` works for authors."""
    config.addinivalue_line("markers", "promise(id): the promise of the Strata contract that the test proves")
    config.addinivalue_line("markers", "requires(capability): run only for a store that declares the capability")
    config.addinivalue_line("markers", "refuses(capability): run only for a store that does not declare the capability")
    config.addinivalue_line("markers", "lasting: run only for a store whose storage is not memory of this process")
    config.stash[_JUDGE] = Judge()
    config.pluginmanager.register(_Verdicts(config), "strata-conformance-verdicts")


def pytest_report_header() -> str:
    """Name the suite and the number of its contract."""
    return f"strata conformance {version('strata-conformance')}, contract {CONTRACT}"


def _promised(item: pytest.Item) -> Promised | None:
    if _PROMISED in item.stash:
        return item.stash[_PROMISED]
    found: Any = getattr(getattr(item, "function", None), "__strata_promise__", None)
    promised = None
    if found is not None:
        tests: Any = getattr(item, "cls", None)
        promised = Promised(
            getattr(tests, "store_name", "") or getattr(tests, "__name__", ""),
            found.id,
            found.text,
            tuple(sorted(mark.args[0].value for mark in item.iter_markers("requires"))),
            tuple(sorted(mark.args[0].value for mark in item.iter_markers("refuses"))),
        )
    item.stash[_PROMISED] = promised
    return promised


@pytest.hookimpl(tryfirst=True)  # so that a plugin that orders tests has the last word
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a class begin with what the others build on: in the order in which its bases are named.

    pytest begins with the last one, the random programs, which fail on whatever is wrong and say the least about it.
    """
    places: dict[Any, list[int]] = {}
    for place, item in enumerate(items):
        if _promised(item) is not None:
            places.setdefault(getattr(item, "cls", None), []).append(place)
    for tests, taken in places.items():
        ordered = sorted((items[place] for place in taken), key=lambda item: _depth(tests, item))
        for place, item in zip(taken, ordered, strict=True):
            items[place] = item


def _depth(tests: Any, item: pytest.Item) -> int:
    """Return which of a class's bases a test comes from."""
    function: Any = getattr(item, "function", None)
    bases = getattr(tests, "__mro__", ())
    name = getattr(function, "__name__", "")
    return next((n for n, base in enumerate(bases) if vars(base).get(name) is function), len(bases))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Put the promise into the properties of the test, which JUnit reports show."""
    promised = _promised(item)
    if promised is not None:
        item.user_properties.extend(promised.properties())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the broken promise, and what the store was asked, beside the failure."""
    report = yield
    promised = _promised(item)
    if promised is not None and report.failed:
        report.sections.append(("Strata contract", f"{promised.id}: {promised.text}"))
        trace: Any = getattr(getattr(item, "instance", None), "strata_trace", None)
        if trace is not None and (said := str(trace)):
            report.sections.append((f"Last calls of {promised.store}", said))
    return report


class _Verdicts:
    """Gathers what the tests come to, and says it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._judge = config.stash[_JUDGE]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect(session.items)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._expect(items)

    def _expect(self, items: list[pytest.Item]) -> None:
        for item in items:
            promised = _promised(item)
            if promised is not None:
                self._judge.expect(promised)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: dict[str, Any] = dict(report.user_properties)
        promised = Promised.of(properties)
        if promised is None:
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if hasattr(report, "wasxfail"):
            self._judge.add(promised, Outcome.KNOWN, report.wasxfail)
        elif report.failed:
            self._judge.add(promised, Outcome.BROKEN)
        elif report.skipped:
            outcome = Outcome.INAPPLICABLE if "inapplicable" in properties else Outcome.UNPROVEN
            self._judge.add(promised, outcome, reason.removeprefix("Skipped: "))
        elif report.when == "call":
            self._judge.add(promised, Outcome.KEPT)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        stores = {name: store for name, store in self._judge.report()["stores"].items() if was_run(store)}
        if not stores:
            return
        terminalreporter.section(f"strata conformance, contract {CONTRACT}")
        for name, store in stores.items():
            terminalreporter.line(f"{name}: {store['verdict']}")
            for capability, said in rows(store):
                terminalreporter.line(f"    {capability:<16} {said}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        path = self._config.getoption("--strata-json")
        if path is not None and not hasattr(self._config, "workerinput"):
            text = json.dumps(self._judge.report(), indent=2, ensure_ascii=False)
            Path(path).write_text(text + "\n", encoding="utf-8")
