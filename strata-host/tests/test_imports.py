"""What the command loads: never a backend, and no more than it needs."""

from __future__ import annotations

import ast
import json
import re
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

import strata_host

SOURCES = sorted(Path(strata_host.__file__).parent.rglob("*.py"))
ALLOWED = {"strata_core", "strata_host", "click", "rich", "attrs"} | sys.stdlib_module_names


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_a_module_imports_core_click_rich_and_nothing_else(source):
    imported = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add((node.module or "").partition(".")[0])

    assert imported <= ALLOWED


def _loaded(process, *args):
    code = (
        "import sys, json\n"
        f"sys.argv[1:] = {list(args)!r}\n"
        "from strata_host.__main__ import main\n"
        "try:\n    main()\n"
        "finally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    child = process(command=[sys.executable, "-c", code])
    return set(json.loads(child.communicate()[1]))


def test_rich_is_not_loaded_for_a_pipe(shelf, process, checkpoint):
    shelf.save(checkpoint("order-1"))
    loaded = _loaded(process, "thread", "list")

    assert "strata_jsonl" in loaded
    assert not {"rich", "pygments", "aiosqlite", "sqlite3", "pytest"} & loaded


def test_the_version_loads_no_plugins(process):
    assert not {"rich", "pluggy", "cattrs", "strata_jsonl"} & _loaded(process, "--version")


def test_the_declared_dependencies_are_the_imported_ones():
    names = {re.match(r"[\w-]+", each)[0] for each in requires("strata-host") if "extra" not in each}

    assert names == {"attrs", "click", "rich", "strata-core"}
