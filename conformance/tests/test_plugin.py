"""What authors see when they use the suite."""

import pytest

pytest_plugins = ["pytester"]

STORE = """
    import pytest
    from strata_conformance import *
    from strata_core.memory import MemoryBackend
    from strata_core.store import RowStore

    class Base(CheckpointStoreTests):
        @pytest.fixture
        def open_store(self, clock):
            backend = MemoryBackend(clock)
            return lambda **options: RowStore(backend, **options)
"""
ONE = "test_a_save_returns_the_position_in_the_threads_log_counted_from_zero"


def run(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    """Run a test file with strict markers and every warning an error, as a careful author does."""
    pytester.makepyfile(STORE + body)
    return pytester.runpytest_inprocess(
        "--strict-markers", "-W", "error", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *options
    )


def test_importing_the_classes_collects_nothing(pytester: pytest.Pytester) -> None:
    """Only a subclass whose name begins with Test is run: importing the suite runs nothing."""
    result = run(pytester, "")

    assert pytest.ExitCode.NO_TESTS_COLLECTED == result.ret


def test_the_header_names_the_suite_and_its_contract(pytester: pytest.Pytester) -> None:
    """The header of a run names the versions of the suite and of the contract."""
    result = run(pytester, "")

    result.stdout.fnmatch_lines(["strata conformance 0.*, contract 1"])


def test_a_class_without_its_fixture_says_what_is_missing(pytester: pytest.Pytester) -> None:
    """A subclass that does not define its fixture fails with the name of the class and of the fixture."""
    result = run(pytester, "\n    class TestMine(CheckpointStoreTests):\n        pass\n", "-k", ONE)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TestMine must define the fixture 'open_store'*"])


def test_a_failure_shows_the_promise_and_both_values(pytester: pytest.Pytester) -> None:
    """A failure reads: the promise with its ID, expected and actual values."""
    result = run(
        pytester,
        """
    class Broken(MemoryBackend):
        async def commit(self, batch):
            done = await super().commit(batch)
            done[0].sequence = 7
            return done

    class TestMine(CheckpointStoreTests):
        @pytest.fixture
        def open_store(self, clock):
            backend = Broken(clock)
            return lambda **options: RowStore(backend, **options)
""",
        "-k",
        ONE,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert *0, 0, 1, 1, 2, 2* == *7, 7, 7, 7, 7, 7*"])
    result.stdout.fnmatch_lines(["*Strata contract*", "save-1: A save returns the sequence of the checkpoint*"])


def test_a_known_failure_must_fail(pytester: pytest.Pytester) -> None:
    """A known failure that passes fails the run; one that fails is reported with its reason."""
    result = run(
        pytester,
        f"""
    class TestMine(Base):
        known_failures = {{"{ONE}": "reported upstream"}}
""",
        "-k",
        ONE,
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)*reported upstream*"])


def test_a_known_failure_must_be_a_test(pytester: pytest.Pytester) -> None:
    """A known failure that names no test of the class is an error when the class is made."""
    result = run(pytester, '\n    class TestMine(Base):\n        known_failures = {"test_nothing": "x"}\n')

    result.stdout.fnmatch_lines(["*TestMine.known_failures names 'test_nothing', which is no test of it*"])


@pytest.mark.parametrize("replacement", [f"{ONE} = None", f"def {ONE}(self): pass"])
def test_a_promise_cannot_be_switched_off(pytester: pytest.Pytester, replacement: str) -> None:
    """A subclass that replaces the test of a promise is an error when the class is made."""
    result = run(pytester, f"\n    class TestMine(Base):\n        {replacement}\n")

    result.stdout.fnmatch_lines([f"*TestMine replaces {ONE}: a promise cannot be switched off*"])


def test_the_promise_stands_in_the_junit_report(pytester: pytest.Pytester) -> None:
    """A JUnit report names the promise of each test as a property."""
    result = run(pytester, "\n    class TestMine(Base):\n        pass\n", "-k", ONE, "--junit-xml=report.xml")

    result.assert_outcomes(passed=1)
    assert '<property name="promise" value="save-1"' in (pytester.path / "report.xml").read_text()
