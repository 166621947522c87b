"""The README is true: its examples run as they stand."""

import re
from pathlib import Path

import pytest

from strata_conformance import RowBackendTests

pytest_plugins = ["pytester"]

README = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
MY_STORE = """
from strata_core.memory import MemoryBackend
from strata_core.store import RowStore

_storages = {}


class MyBackend(MemoryBackend):
    def __new__(cls, path, clock):
        return _storages.setdefault(path, super().__new__(cls))

    def __init__(self, path, clock):
        if not hasattr(self, "_heads"):
            super().__init__(clock)


def MyStore(path, clock, **options):
    return RowStore(MyBackend(path, clock), **options)
"""


@pytest.mark.parametrize("example", EXAMPLES[:2], ids=["a row backend", "a store"])
def test_an_author_can_copy_the_example(pytester: pytest.Pytester, example: str) -> None:
    """The code of the README, put beside a store, runs the suite and passes."""
    pytester.makepyfile(my_store=MY_STORE, test_conformance=example)
    pytester.syspathinsert()
    result = pytester.runpytest_inprocess(
        "-q", "-W", "error", "--strict-markers", "-p", "no:cacheprovider", "-p", "no:hypothesispytest",
        "-k", "lease_can or random or purge_takes",
    )  # fmt: skip
    outcomes = result.parseoutcomes()

    assert {"passed", "deselected"} == set(outcomes) - {"warnings"}
    assert outcomes["passed"] > 15


def test_the_known_failure_of_the_readme_is_a_test() -> None:
    """The name in the README's example of a known failure is that of a test."""
    (name,) = re.findall(r'known_failures = \{"(\w+)"', EXAMPLES[2])

    assert hasattr(RowBackendTests, name)
