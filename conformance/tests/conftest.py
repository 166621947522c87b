"""Pins how many tests of the suite the stores of this distribution and its example skip.

Each of these skips is the refusal of a capability that the store declares, a promise of expiry, which none of them
has, or, in memory, one about several processes or about setting storage up.  One more would be a hole, and fails the
run.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

SKIPS = {
    "TestMemory": 30,
    "TestSlowMemory": 30,
    "TestBothStores": 28,
    "TestBothBackends": 30,
    "TestFolder": 23,
}
_skipped: Counter[str] = Counter()
_run: set[str] = set()
_is_whole = [True]


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    if items:
        _is_whole[0] = False


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    parts = report.nodeid.split("::")
    if len(parts) > 2 and parts[1] in SKIPS:
        _run.add(parts[1])
        _skipped[parts[1]] += report.skipped and not hasattr(report, "wasxfail")


def pytest_sessionfinish(session: pytest.Session) -> None:
    wrong = {name: _skipped[name] for name in sorted(_run) if _skipped[name] != SKIPS[name]}
    is_whole = (
        _is_whole[0] and session.testsfailed == 0 and not any("::" in argument for argument in session.config.args)
    )
    if is_whole and wrong:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nskips of the suite: {wrong}, pinned are { ({name: SKIPS[name] for name in wrong}) }")
