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
    ("file", "old", "new", "complaint"),
    [
        ("records.json", '\\"status\\":\\"completed\\"', '\\"stats\\":\\"completed\\"', "a record has no stats"),
        ("records.json", "1.6.3", "1.10.0", "schema_version 1.10.0 is newer"),
        ("rows.json", '\\"base\\":0', '\\"base\\":1', "builds on 1, and row 0 is before it"),
    ],
)
def test_the_other_half_takes_no_vector_for_golden_that_is_not(foreign, tmp_path, file, old, new, complaint):
    for name in ("records.json", "rows.json"):
        text = (VECTORS / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace(old, new, 1) if name == file else text, encoding="utf-8")

    done = foreign("vectors", str(tmp_path))

    assert (1, "") == (done.returncode, done.stdout)
    assert complaint in done.stderr


def test_the_other_half_refuses_a_blob_that_has_not_its_digest(foreign, tmp_path):
    document = json.loads((VECTORS / "rows.json").read_text(encoding="utf-8"))
    vector = next(each for each in document["vectors"] if each["blobs"])
    digest = next(iter(vector["blobs"]))
    vector["blobs"][digest] = '"another"'
    (tmp_path / "rows.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "records.json").write_bytes((VECTORS / "records.json").read_bytes())

    assert f"foreign: blob {digest} is another one\n" == foreign("vectors", str(tmp_path)).stderr
