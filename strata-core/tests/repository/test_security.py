"""What SECURITY.md says of the code, held against all that is shipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

RUNS_DATA = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "yaml"}
STARTS_PROGRAMS = {"subprocess", "multiprocessing", "pty"}
TRUSTS_ANYBODY = {"CERT_NONE", "_create_unverified_context"}
VALUES = {
    "state",
    "frozen_state",
    "overrides",
    "field_overrides",
    "payload",
    "body",
    "envelope",
    "content",
    "checkpoint",
}


@cache
def parsed(root: Path) -> list[tuple[str, ast.Module]]:
    """Every module that a distribution ships, by its path from the root."""
    paths = sorted(root.glob("*/src/**/*.py"))
    return [(path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def shipped(root: Path, *, test_tool: bool) -> list[tuple[str, ast.Module]]:
    """What is shipped, with or without the test tool."""
    return [(name, tree) for name, tree in parsed(root) if test_tool or not name.startswith("conformance/")]


def imported(tree: ast.Module) -> set[str]:
    """The top-level names of all that a module imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def named(tree: ast.AST) -> set[str]:
    """Every name and attribute in a tree."""
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    }


def outermost(node: ast.expr) -> set[str]:
    """The name of what an argument is, when it is a plain name or attribute: its type or length tells no value."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
    return set()


def logged(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of a module's logger."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_logger"))):
                yield node


def test_data_never_names_code_to_run(root: Path) -> None:
    assert [] == [name for name, tree in shipped(root, test_tool=False) if imported(tree) & RUNS_DATA]


def test_the_test_tool_pickles_for_its_own_processes_only(root: Path) -> None:
    talks = [name for name, tree in shipped(root, test_tool=True) if imported(tree) & RUNS_DATA]

    assert [
        "conformance/src/strata_conformance/_child.py",
        "conformance/src/strata_conformance/suite/_processes.py",
    ] == talks


def test_code_is_made_in_the_three_modules_that_the_page_tells_of(root: Path) -> None:
    """All make functions from the names of the fields of a state class."""
    makes = [name for name, tree in shipped(root, test_tool=True) if named(tree) & {"exec", "eval"}]
    folder = "strata-core/src/strata_core/graph"

    assert [f"{folder}/_copying.py", f"{folder}/_encoding.py", f"{folder}/_unstructure.py"] == makes
    assert f"[three modules]({folder})" in (root / "SECURITY.md").read_text(encoding="utf-8")


def test_nothing_but_the_test_tool_starts_a_program(root: Path) -> None:
    starts = [
        name
        for name, tree in shipped(root, test_tool=False)
        if imported(tree) & STARTS_PROGRAMS or named(tree) & {"system", "popen", "execv", "execvp", "posix_spawn"}
    ]

    assert [] == starts


def test_certificates_are_never_turned_off(root: Path) -> None:
    for name, tree in shipped(root, test_tool=True):
        assert set() == named(tree) & TRUSTS_ANYBODY, name
        turned_off = [
            keyword.arg
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg == "verify" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        ]
        assert [] == turned_off, name


def test_logs_are_given_no_value_of_a_state(root: Path) -> None:
    calls = 0
    for name, tree in shipped(root, test_tool=False):
        for call in logged(tree):
            calls += 1
            told = set().union(*(outermost(argument) for argument in call.args))
            assert set() == told & VALUES, f"{name}:{call.lineno}"

    assert 10 < calls


@pytest.mark.parametrize("name", ["STRATA_DISABLE_PLUGINS", "STRATA_STORAGE"])
def test_the_variables_that_the_page_names_are_read(root: Path, name: str) -> None:
    assert name in (root / "SECURITY.md").read_text(encoding="utf-8")
    assert any(
        isinstance(node, ast.Constant) and node.value == name
        for _, tree in shipped(root, test_tool=False)
        for node in ast.walk(tree)
    )
