"""What README.md and WRITING-A-STORE.md show is real code."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest

from strata_conformance import Promise, RowBackendTests, promises_of
from strata_core.rows import RowBackend

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/strata-folder"
GUIDE = (ROOT / "WRITING-A-STORE.md").read_text()
(BOUNDARY, *BLOCKS) = re.findall(r"```(?:python|toml)\n(.*?)```", GUIDE, re.DOTALL)
FILES = [path for path in sorted(EXAMPLE.rglob("*")) if path.suffix in {".py", ".toml"}]
SOURCES = {path.relative_to(EXAMPLE): path.read_text() for path in FILES}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[0].strip()[:40])
def test_each_block_of_the_guide_stands_in_the_example(block: str) -> None:
    """Literally, in one of its files."""
    assert [] != [path for path, source in SOURCES.items() if block.strip("\n") in source]


def test_the_guide_begins_with_the_methods_of_a_row_backend() -> None:
    """Its first block has all of them, with the signatures they have in core."""
    head, *shown = BOUNDARY.splitlines()
    source = inspect.getsource(RowBackend)
    methods = [name for name, member in vars(RowBackend).items() if inspect.isfunction(member)]

    assert methods == [line.split("(")[0].removeprefix("    async def ") for line in shown]
    assert [] == [line for line in (head, *shown) if line.removesuffix(" ...") not in source]


def test_the_guide_shows_every_method_that_an_author_writes() -> None:
    """Nothing of the row boundary is left to guess."""
    for method in ("open", "close", "setup", "commit", "read_head", "read", "read_blobs", "list_heads"):
        assert re.search(rf"\b_?{method}\(", "\n".join(BLOCKS)), method


def test_each_promise_that_the_guide_names_exists() -> None:
    known = {promise.id: promise for promise in promises_of(RowBackendTests)}
    named = set(re.findall(r"\[([a-z]+-\d+)\]", GUIDE))

    assert {"row-1", "rule-1"} < named
    assert set() == named - set(known)
    assert all(isinstance(known[name], Promise) for name in named)


def test_each_link_of_the_guide_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", GUIDE) + re.findall(r"^\[[^]]+\]: (\S+)$", GUIDE, re.MULTILINE)

    assert [] == [target for target in targets if not (ROOT / target.partition("#")[0]).exists()]


def test_the_files_that_the_guide_lists_are_those_of_the_example() -> None:
    (listing,) = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    listed = [shlex.split(line)[0] for line in listing.splitlines()[1:]]

    assert [] == [name for name in listed if not (EXAMPLE / name).is_file()]
    assert {str(path) for path in SOURCES if path.parts[0] != "tests"} <= set(listed)


def test_the_example_imports_only_what_is_public() -> None:
    """A third party's plugin leans on no private module of core, and on nothing else of this repository."""
    imported = {
        module
        for path, source in SOURCES.items()
        if path.parts[0] == "src"
        for module in re.findall(r"^\s*from (strata_\S+) import", source, re.MULTILINE)
    }

    assert [] == [name for name in imported if name.startswith("strata_core") and "._" in name]
    assert {"strata_core", "strata_folder"} == {name.partition(".")[0] for name in imported}


def test_the_example_of_the_readme_is_a_test() -> None:
    """Its code is that of `test_example.py`, which runs."""
    readme = (ROOT / "README.md").read_text()
    section = readme[readme.index("## Test your application under faults") :]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)

    assert block in Path(__file__).with_name("test_example.py").read_text()
