"""`strata graph`: definitions are checked and shown, and no code is run."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from strata_core.graph import CheckpointPolicy, RetryPolicy, StateGraph
from strata_core.records import GraphIdentity
from strata_host.cli import strata as command

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def keep(*given):
    return given[0]


@pytest.fixture
def definition():
    child = StateGraph(dict).add_node("Ask", keep).add_interrupt_boundary("Ask").compile()
    return (
        StateGraph(dict)
        .add_node("Price", keep, retry=RetryPolicy(3), fallback="Work")
        .add_conditional_edge("Price", keep, ["Work", "Both"])
        .add_interrupt_boundary("Price", on_reject="Both", timeout=timedelta(hours=36))
        .add_subgraph("Work", child, enter=keep, leave=keep)
        .add_timer("Work", timedelta(days=1))
        .add_edge("Work", "Both")
        .add_parallel_group("Both", {"evil\x1b[2J": keep, "b": keep}, keep, max_concurrency=2)
        .add_wait_for_event("Both", "paid", timeout=timedelta(seconds=1), on_timeout="Work")
        .compile(identity=GraphIdentity("orders", "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
        .definition()
    )


@pytest.fixture
def file(definition, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(definition), encoding="utf-8")
    return path


@pytest.fixture
def broken(definition, tmp_path):
    definition = deepcopy(definition)
    definition["entry"] = "Nowhere"
    definition["nodes"][1]["child"]["edges"] = [{"source": "Ask", "target": "x\x1b[2J"}]
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(definition), encoding="utf-8")
    return path


class TestValidate:
    def test_a_valid_definition_is_said_to_be_so(self, strata, file):
        assert strata("graph", "validate", str(file)).stdout == "valid: 4 nodes\n"

    def test_every_problem_has_its_line_with_code_and_place(self, strata, broken):
        result = strata("graph", "validate", str(broken), code=1)
        header, *lines = result.stdout.splitlines()

        assert ["CODE", "NODE", "PROBLEM"] == header.split()
        assert [
            ("STRATA_ERR_DANGLING_EDGE", "-"),
            ("STRATA_ERR_DANGLING_EDGE", "Work / Ask"),
        ] == [tuple(re.split(r"\s{2,}", line)[:2]) for line in lines]
        assert result.stderr == ""
        assert "\x1b" not in result.stdout

    def test_json_has_the_documented_keys(self, strata, broken, file):
        (documented,) = re.findall(r"^\| `graph validate` \| `({.*)` \|$", README, re.MULTILINE)
        document = json.loads(strata("graph", "validate", "--json", str(broken), code=1).stdout)

        assert set(re.findall(r'"(\w+)"', documented)) == {*document, *document["problems"][0]}
        assert [[], ["Work"]] == [problem["path"] for problem in document["problems"]]
        assert {"valid": True, "problems": []} == json.loads(strata("graph", "validate", "--json", str(file)).stdout)

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a":1,"a":2}', b"[]"], ids=range(6))
    @pytest.mark.parametrize("verb", ["validate", "show"])
    def test_what_is_no_definition_is_told_without_a_traceback(self, content, verb):
        result = CliRunner().invoke(command, ["graph", verb, "-"], input=content, prog_name="strata")

        assert result.exit_code == 1
        assert "STRATA_ERR_" in result.output
        assert "unexpected error" not in result.output
        assert (verb == "validate") == (result.stderr == "")

    def test_a_definition_comes_by_a_pipe_too(self, process, file):
        with file.open("rb") as stream:
            child = process("graph", "validate", "-", stdin=stream)
            output, error = child.communicate()

        assert (0, b"valid: 4 nodes\n", b"") == (child.returncode, output, error)


@pytest.mark.parametrize("verb", ["validate", "show"])
class TestFile:
    def test_a_file_that_does_not_exist_is_wrong_usage(self, strata, verb, tmp_path):
        error = strata("graph", verb, str(tmp_path / "none.json"), code=2).stderr

        assert error.startswith(f"strata: invalid value for FILE: '{tmp_path}/none.json' does not exist (see ")

    def test_a_module_is_not_imported(self, strata, verb):
        error = strata("graph", verb, "orders:graph", code=2).stderr

        assert "'orders:graph' does not exist; no code is imported here: write the JSON of graph.definition()" in error

    def test_a_folder_is_wrong_usage(self, strata, verb, tmp_path):
        assert "is a folder, not a file" in strata("graph", verb, str(tmp_path), code=2).stderr

    def test_a_name_that_cannot_be_one_is_wrong_usage(self, strata, verb):
        assert "is no name of a file" in strata("graph", verb, "a\0b", code=2).stderr

    def test_what_cannot_be_read_says_why(self, strata, verb, tmp_path):
        loop = tmp_path / "loop"
        loop.symlink_to(loop)

        assert "Too many levels of symbolic links" in strata("graph", verb, str(loop), code=1).stderr


class TestShow:
    def test_nodes_ways_waits_and_fallbacks_are_shown(self, strata, file):
        shown = strata("graph", "show", str(file)).stdout
        rows = [tuple(re.split(r"\s{2,}", line)) for line in shown.splitlines() if line.count("  ") > 3]

        assert shown.startswith("graph:       orders@1\ncheckpoints: every_node\n")
        assert [
            (
                "Price",
                "node",
                "Work or Both",
                "person, rejected: Both, after 1 day 12 hours: the thread ends",
                "3 attempts, then Work",
            ),
            ("Work", "subgraph", "Both", "timer 1 day", "-"),
            ("Work / Ask", "node", "-", "person", "-"),
            ("Both", "group, 2 at a time", "-", "event paid, after 1 second: Work", "-"),
            (r'Both / "evil\u001b[2J"', "branch", "-", "-", "-"),
            ("Both / b", "branch", "-", "-", "-"),
        ] == rows[1:]

    def test_mermaid_is_what_the_graph_draws(self, strata, file, definition):
        from strata_core.graph.definitions import to_mermaid

        assert to_mermaid(definition) == strata("graph", "show", "--mermaid", str(file)).stdout

    def test_json_is_the_definition(self, strata, file, definition):
        result = strata("graph", "show", "--json", str(file))

        assert result.stdout.isascii()
        assert definition == json.loads(result.stdout)

    def test_both_at_once_are_wrong_usage(self, strata, file):
        error = strata("graph", "show", "--json", "--mermaid", str(file), code=2).stderr

        assert error.startswith("strata: --mermaid and --json exclude each other (see ")

    def test_one_that_is_not_valid_points_to_the_check(self, strata, broken):
        error = strata("graph", "show", str(broken), code=1).stderr

        assert "holds no valid definition: STRATA_ERR_DANGLING_EDGE: the entry names 'Nowhere'" in error
        assert f" and 1 more; see 'strata graph validate {broken}'" in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("verb", ["validate", "show"])
def test_every_option_is_documented(strata, verb):
    options = set(re.findall(r"--[a-z-]+", strata("graph", verb, "--help").stdout)) - {"--help"}

    assert options <= set(re.findall(r"--[a-z-]+", README))
