"""What importing and opening import: in a fresh interpreter, since this one has imported everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

HEAVY = ["aiosqlite", "boto3", "cattrs", "pluggy", "psycopg", "pytest", "redis", "strata_sqlite", "strata_host"]


def imported_after(code: str, *path: object) -> set[str]:
    """Return the names of all modules that a new interpreter has imported after running `code`."""
    script = textwrap.dedent(code) + "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
    )
    return set(json.loads(done.stdout))


class TestImports:
    @pytest.mark.parametrize(
        "module",
        ["strata_core", "strata_core.opening", "strata_core.urls", "strata_core.blobs", "strata_core.errors"],
    )
    def test_importing_core_imports_nothing_heavy(self, module: str) -> None:
        """No plugin machinery, no driver, no test framework."""
        assert set() == imported_after(f"import {module}") & {*HEAVY, "importlib.metadata"}

    def test_hookspecs_import_pluggy_only(self) -> None:
        """A plugin module imports them, and is imported when its scheme is opened."""
        assert {"pluggy"} == imported_after("import strata_core.hookspecs") & set(HEAVY)

    def test_making_a_store_looks_for_no_plugin(self) -> None:
        """Before ``async with`` nothing happens."""
        code = "from strata_core.opening import open_store\nopen_store('sqlite:///orders.db')"

        assert set() == imported_after(code) & set(HEAVY)

    def test_opening_imports_the_wanted_plugin_only(self, install: Any, store_module: Any) -> None:
        """The others are not imported, whatever they would do."""
        sites = [
            install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")}),
            install("bad-strata", stores={"bad": "bad_strata"}, modules={"bad_strata": "raise SystemExit(3)"}),
            install("ink-strata", wrappers={"ink": "ink_strata"}, modules={"ink_strata": "raise SystemExit(3)"}),
        ]
        code = """
            import asyncio
            from strata_core.opening import open_store

            async def main():
                async with open_store("acme://") as store:
                    assert await store.load("t") is None

            asyncio.run(main())
        """

        ours = imported_after(code, *sites) & {"acme_strata", "bad_strata", "ink_strata", "strata_core._plugin"}

        assert {"acme_strata"} == ours
