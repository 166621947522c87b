"""The README is true: its examples run as they stand."""

import re
import subprocess
import sys
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


(FUNCTION,) = (example for example in EXAMPLES if example.startswith("def my_store("))
CLASSES = [example for example in EXAMPLES if "from my_store import" in example]
(REFERENCE,) = (example for example in EXAMPLES if "def reference" in example)
(KNOWN,) = (example for example in EXAMPLES if "known_failures" in example)


@pytest.mark.parametrize("example", CLASSES, ids=["a row backend", "a store"])
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
    (name,) = re.findall(r'known_failures = \{"(\w+)"', KNOWN)

    assert hasattr(RowBackendTests, name)


def test_the_reference_of_the_readme_overrides_the_fixture() -> None:
    """The fixture in the README has the name and the arguments of the one it takes the place of."""
    assert "def reference(self" in REFERENCE
    assert hasattr(RowBackendTests, "reference")


def test_the_function_of_the_readme_is_a_target(tmp_path: Path) -> None:
    """The command takes the function as it stands."""
    (tmp_path / "my_targets.py").write_text(MY_STORE + FUNCTION)
    program = [sys.executable, "-m", "strata_conformance", "my_targets:my_store", "--", "-k", "row or rule"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    assert "my_targets:my_store: not judged whole (contract 1)" == done.stdout.splitlines()[-1], done.stdout
    assert "strata-conformance: a part of the tests was left out" in done.stderr
