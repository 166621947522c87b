"""Demo 09: two engines share threads; the other one knows the format only."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from strata_core.store import RowStore

VECTORS = Path(__file__).resolve().parents[3] / "schema" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="the golden vectors are in a checkout only")


@pytest.fixture
def interop(demo):
    return demo("09-cross-language-interop")


@pytest.fixture
def foreign(interop):
    def run(*args):
        return subprocess.run(
            [sys.executable, "-I", "-S", str(interop.folder / "foreign.py"), *args],
            capture_output=True,
            encoding="utf-8",
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


def test_its_readme_says_what_it_prints(interop):
    assert interop.readme("text") == interop.call()


def test_the_other_half_imports_the_standard_library_and_nothing_else(interop):
    imported = set()
    for node in ast.walk(ast.parse((interop.folder / "foreign.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])

    assert {"json", "sqlite3"} < imported <= sys.stdlib_module_names


def test_it_fails_when_an_append_asks_for_nothing(interop, monkeypatch):
    monkeypatch.setattr(
        RowStore, "save_if_latest", lambda store, checkpoint, expected, **options: store.save(checkpoint)
    )

    interop.call(fails="The demo failed: interrupted saved")


def test_the_other_half_does_nothing_before_its_record_is_saved(foreign):
    done = foreign("begin", "wire-1")

    assert 1 == done.returncode
    assert 1 == len(done.stdout.splitlines())
    assert "foreign: the record was not saved: nobody answers\n" == done.stderr


@pytest.mark.parametrize(
    ("file", "name", "old", "new", "complaint"),
    [
        ("records.json", "minimal", '"status"', '"stats"', "a record has no stats"),
        ("records.json", "minimal", "1.6.3", "1.10.0", "schema_version 1.10.0 is newer than 1.9"),
        ("records.json", "nested-twice", "1.7.0", "1.7.1", "golden record nested-twice comes out differently"),
        ("rows.json", "delta-set", '"base":0', '"base":1', "row 1 builds on 1, and row 0 is before it"),
        ("rows.json", "offload-whole", "Lorem", "Larem", "is another one"),
    ],
)
def test_the_other_half_takes_no_vector_for_golden_that_is_not(foreign, tmp_path, file, name, old, new, complaint):
    for each in ("records.json", "rows.json"):
        document = json.loads((VECTORS / each).read_text(encoding="utf-8"))
        if each == file:
            vectors = [vector for vector in document["vectors"] if vector["name"] == name]
            document["vectors"] = json.loads(json.dumps(vectors).replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]))
            assert vectors != document["vectors"]
        (tmp_path / each).write_text(json.dumps(document), encoding="utf-8")

    done = foreign("vectors", str(tmp_path))

    assert (1, "") == (done.returncode, done.stdout)
    assert complaint in done.stderr
