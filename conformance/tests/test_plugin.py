"""What authors see when they use the suite."""

import json

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


def test_a_table_says_what_each_capability_comes_to(pytester: pytest.Pytester) -> None:
    """A run ends with the verdict on each store, and on each capability by the promises that need it."""
    result = run(
        pytester,
        f"""
    from strata_core.capabilities import Capability

    class Bare(MemoryBackend):
        capabilities = MemoryBackend.capabilities - {{Capability.QUERY}}

    class TestGood(Base, QueryTests):
        store_name = "the good one"

    class TestBare(QueryTests):
        @pytest.fixture
        def open_store(self, clock):
            backend = Bare(clock)
            return lambda **options: RowStore(backend, **options)

    class Broken(MemoryBackend):
        async def commit(self, batch):
            done = await super().commit(batch)
            done[0].sequence = 7
            return done

    class TestKnown(CheckpointStoreTests):
        known_failures = {{"{ONE}": "reported upstream"}}

        @pytest.fixture
        def open_store(self, clock):
            backend = Broken(clock)
            return lambda **options: RowStore(backend, **options)
""",
        "-k",
        f"{ONE} or TestBare or (TestGood and empty_store)",
    )

    result.stdout.fnmatch_lines(
        [
            "*strata conformance, contract 1*",
            "the good one: not judged whole",
            "    required         not judged whole 1/*",
            "    query            not judged whole 1/*",
            "TestKnown: not judged whole",
            "    required         not judged whole 0/*, 1 known to fail",
            "TestBare: conforms",
            "    query            not declared (refusal ok)",
        ]
    )


def test_the_report_holds_each_promise_of_each_store(pytester: pytest.Pytester) -> None:
    """--strata-json writes the verdicts, with the sentence, the outcome and the reasons of each promise."""
    run(
        pytester,
        "\n    class TestMine(ProcessTests, Base):\n        pass\n",
        "-k",
        f"{ONE} or fenced",
        "--strata-json=r",
    )
    report = json.loads((pytester.path / "r").read_text())
    promises = report["stores"]["TestMine"]["promises"]

    assert 1 == report["contract"]
    assert ("kept", []) == (promises["save-1"]["outcome"], promises["save-1"]["reasons"])
    assert promises["save-1"]["text"].startswith("A save returns the sequence")
    assert "inapplicable" == promises["process-4"]["outcome"]
    assert ["TestMine: the store does not declare multi_process"] == promises["process-4"]["reasons"]
    assert "not run" == promises["save-2"]["outcome"]


def test_a_store_without_a_reference_says_what_is_unproven(pytester: pytest.Pytester) -> None:
    """The tests with several processes are skipped with the reason, and the verdict counts them as unproven."""
    result = run(
        pytester,
        """
    from strata_core.capabilities import Capability

    class Shared(MemoryBackend):
        capabilities = MemoryBackend.capabilities | {Capability.MULTI_PROCESS}

    class TestMine(ProcessTests):
        @pytest.fixture
        def open_store(self, clock):
            backend = Shared(clock)
            return lambda **options: RowStore(backend, **options)
""",
        "-rs",
    )

    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*TestMine: no reference given*"])
    result.stdout.fnmatch_lines(["    multi_process    conforms 0/4, 4 unproven"])


def test_the_calls_stand_beside_a_failure(pytester: pytest.Pytester) -> None:
    """A failure shows the last calls of every store that the test opened, failed ones too, and how many came before."""
    result = run(
        pytester,
        """
    class Forgetful(MemoryBackend):
        async def read(self, thread_id, first, last):
            return [] if first == 49 else await super().read(thread_id, first, last)

    class TestMine(CheckpointStoreTests):
        @pytest.fixture
        def open_store(self, clock):
            backend = Forgetful(clock)
            return lambda **options: RowStore(backend, **options)
""",
        "-k",
        "test_saves_that_one_handle_starts_together",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*Last calls of TestMine*", "... 80 before", "#1 load(thread_id='t', at=30) -> LogEntry(sequence=30*"]
    )
    result.stdout.fnmatch_lines(["#1 load(thread_id='t', at=49) -> None"])


@pytest.mark.parametrize("entered", [False, True], ids=["as it is", "from a context manager"])
def test_the_calls_of_a_blob_store_stand_there_too(pytester: pytest.Pytester, entered: bool) -> None:
    """Of either kind of blob store, and large content is cut."""
    result = run(
        pytester,
        f"""
    import contextlib
    from strata_core.blobs import InMemoryBlobStore

    class Cut(InMemoryBlobStore):
        async def get(self, thread_id, digest):
            content = await super().get(thread_id, digest)
            return content and content[:1000]

    class TestMine(BlobStoreTests):
        @pytest.fixture
        def open_blobs(self):
            blobs = Cut()
            return lambda: contextlib.nullcontext(blobs) if {entered} else blobs
""",
        "-k",
        "as_it_was_put or refused",
    )

    result.assert_outcomes(failed=1, passed=3)
    result.stdout.fnmatch_lines(
        [
            "*Last calls of TestMine*",
            "#1 put(thread_id='t', digest='sha256:*', content=b'zzz*'... (5,000,000 bytes)) -> None",
            "#2 get(thread_id='t', digest='sha256:*) -> b'\"first\"'",
        ]
    )


def test_the_lowest_broken_promise_comes_first(pytester: pytest.Pytester) -> None:
    """A run that ends at the first failure ends at the one that says the most: at the rows, not at the random programs.

    In its report the programs that were tried say nothing.
    """
    run_of = """
    class Short(MemoryBackend):
        async def read(self, thread_id, first, last):
            rows = await super().read(thread_id, first, last)
            return [row for row in rows if first is None or row.sequence >= first]

    class TestMine(RowBackendTests):
        in_memory = True

        @pytest.fixture
        def open_backend(self, clock):
            backend = Short(clock)
            return lambda: backend
"""
    names = "reach_back or rule_book_says or any_program or deltas_reload"
    first = run(pytester, run_of, "-x", "-k", names)
    order = run(pytester, run_of, "--collect-only", "-q", "-k", names)
    tests = [line.rpartition("::")[2].partition("[")[0] for line in order.outlines if "::" in line]

    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(["row-2: A read returns rows*"])
    assert [
        "test_reads_reach_back_to_the_whole_row",
        "test_random_commits_come_out_as_the_rule_book_says",
        "test_deltas_reload_equal_to_what_was_saved",
        "test_any_program_comes_out_as_the_model_says",
    ] == list(dict.fromkeys(tests))


def test_a_random_program_that_fails_stands_alone_in_its_report(pytester: pytest.Pytester) -> None:
    """What the hundreds of programs before it made core warn of is not there."""
    result = run(
        pytester,
        """
    class Short(MemoryBackend):
        async def read(self, thread_id, first, last):
            rows = await super().read(thread_id, first, last)
            return [row for row in rows if first is None or row.sequence >= first]

    class TestMine(ModelTests):
        @pytest.fixture
        def open_store(self, clock):
            backend = Short(clock)
            return lambda **options: RowStore(backend, **options)
""",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the last call of this program came out wrong"])
    result.stdout.no_fnmatch_line("*was not purged*")
