"""The names that users meet first."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import strata_core


def test_every_public_name_can_be_imported_from_the_top():
    for name in strata_core.__all__:
        assert getattr(strata_core, name) is not None


def test_type_checkers_see_the_names_that_are_there_at_run_time():
    tree = ast.parse(Path(strata_core.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert seen == strata_core._HOMES
    assert sorted(["__version__", *seen]) == sorted(strata_core.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(strata_core, "Nonsense")


def test_importing_the_package_and_its_engine_imports_no_converter_plugin_machinery_driver_or_test_framework():
    program = (
        "import sys, strata_core; strata_core.StateGraph; strata_core.Checkpoint; strata_core.Deltas;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert set() == {"cattrs", "pluggy", "pytest", "aiosqlite", "sqlite3", "psycopg", "redis", "boto3"} & set(
        out.split()
    )
