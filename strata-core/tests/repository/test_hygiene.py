"""What no file of the repository may hold: places of one machine, hosts of a registry, work left for later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

OURS = {
    ".ci", ".gitignore", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "VERSIONING.md", "conformance",
    "pyproject.toml", "schema", "strata-blobs-s3", "strata-core", "strata-host", "strata-postgres", "strata-redis",
    "strata-sqlite", "tox.ini", "toxfile.py",
}  # fmt: skip


def texts(files: list[Path]) -> list[tuple[Path, str]]:
    found = []
    for path in files:
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:  # a golden database, say
            continue
    return found


def test_the_root_holds_nothing_unexpected(files: list[Path], root: Path) -> None:
    assert OURS == {path.relative_to(root).parts[0] for path in files}


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"(?<![\w.])/(?:root|home|work|farm|tmp|Users)/\w", id="a path of one machine"),
        pytest.param(r"(?:pypi|pythonhosted)\.(?:org|io)", id="a registry's host"),
        pytest.param(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", id="work left for later"),
        pytest.param(r"<{7} |>{7} ", id="an unresolved merge"),
    ],
)
def test_no_file_holds(files: list[Path], root: Path, pattern: str) -> None:
    found = [
        f"{path.relative_to(root)}:{number}"
        for path, text in texts(files)
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(pattern, line)
    ]

    assert [] == found


def test_every_text_ends_with_one_newline(files: list[Path], root: Path) -> None:
    wrong = [str(path.relative_to(root)) for path, text in texts(files) if text and not re.search(r"\S\n\Z", text)]

    assert [] == wrong


def test_links_between_the_documents_lead_somewhere(files: list[Path], root: Path) -> None:
    dead = [
        f"{path.relative_to(root)}: {link}"
        for path in files
        if path.suffix == ".md"
        for link in re.findall(r"\]\((?!\w+:|#)([^)#]+)", path.read_text(encoding="utf-8"))
        if not (path.parent / link).exists()
    ]

    assert [] == dead
