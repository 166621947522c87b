"""The pytest plugin: markers, a header line, and the promise beside each failure."""

from __future__ import annotations

from collections.abc import Generator
from importlib.metadata import version
from typing import Any

import pytest

from strata_conformance._contract import CONTRACT

__all__: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, so that ``--strict-markers`` works for authors."""
    config.addinivalue_line("markers", "promise(id): the promise of the Strata contract that the test proves")
    config.addinivalue_line("markers", "requires(capability): run only for a store that declares the capability")
    config.addinivalue_line("markers", "refuses(capability): run only for a store that does not declare the capability")


def pytest_report_header() -> str:
    """Name the suite and the number of its contract."""
    return f"strata conformance {version('strata-conformance')}, contract {CONTRACT}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Put the promise's ID into the properties of the test, which JUnit reports show."""
    found: Any = getattr(getattr(item, "function", None), "__strata_promise__", None)
    if found is not None:
        item.user_properties.append(("promise", found.id))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the broken promise beside the failure."""
    report = yield
    found: Any = getattr(getattr(item, "function", None), "__strata_promise__", None)
    if found is not None and report.failed:
        report.sections.append(("Strata contract", f"{found.id}: {found.text}"))
    return report
