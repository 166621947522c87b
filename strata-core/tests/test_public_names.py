"""The names that users meet first."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import strata_core
import strata_core.graph


def test_every_public_name_can_be_imported_from_the_top():
    for package in (strata_core, strata_core.graph):
        for name in package.__all__:
            assert getattr(package, name) is not None


def test_type_checkers_see_the_names_that_are_there_at_run_time():
    for package, more in ((strata_core, ["__version__"]), (strata_core.graph, [])):
        tree = ast.parse(Path(package.__file__).read_text())
        block = next(node for node in tree.body if isinstance(node, ast.If))
        seen = {
            alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
        }

        assert seen == package._HOMES
        assert sorted([*more, *seen]) == sorted(package.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(strata_core, "Nonsense")
    assert not hasattr(strata_core.graph, "Nonsense")


def test_importing_what_a_program_begins_with_imports_neither_what_runs_a_graph_nor_what_stores_one():
    """Import time is paid by everybody: what only `compile` and opening a store need is imported by those."""
    parts = {
        "": "_opening_arguments _statuses _validation capabilities clock errors graph opening options ports",
        "graph.": "_bodies _builder _drafts _handlers _policy _retry _signals _state",
        "ports.": "_blobs _query _retention _store _whole",
    }
    names = [f"strata_core.{package}{name}" for package, names in parts.items() for name in names.split()]
    expected = sorted(["strata_core", *names])
    program = (
        "import sys; from strata_core import StateGraph, open_store, HumanSignal;"
        "print(*sorted(name for name in sys.modules if name.startswith('strata_core')))"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert expected == out.split()


def test_importing_the_package_and_its_engine_imports_no_converter_plugin_machinery_driver_or_test_framework():
    program = (
        "import sys, strata_core; strata_core.CompiledGraph; strata_core.Checkpoint; strata_core.Deltas;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert set() == {"cattrs", "pluggy", "pytest", "aiosqlite", "sqlite3", "psycopg", "redis", "boto3"} & set(
        out.split()
    )
