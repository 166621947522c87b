"""The page for users of LangGraph: the Strata blocks are one program that prints what the page says."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

import strata_core

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "strata-core" / "COMING-FROM-LANGGRAPH.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
STRATA, LANGGRAPH = "# Strata\n", "# LangGraph\n"


def program(title: str) -> str:
    return "\n\n".join(code for language, code in BLOCKS if language == "python" and code.startswith(title))


def test_the_strata_blocks_are_one_program_that_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strata_half.py").write_text(program(STRATA), encoding="utf-8")

    runpy.run_path("strata_half.py", run_name="__main__")

    assert "".join(code for language, code in BLOCKS if language == "text") == capsys.readouterr().out


def test_what_stands_below_a_pair_is_said_of_both_halves() -> None:
    """The other half has no tests here: it is only sure to be Python, and to stand where the page says."""
    order = [
        code.partition("\n")[0].removeprefix("# ") if language == "python" else language for language, code in BLOCKS
    ]

    assert re.fullmatch(r"(LangGraph Strata text |Strata text )+", " ".join([*order, ""]))
    ast.parse(program(LANGGRAPH))


def test_the_events_and_names_of_the_page_exist() -> None:
    mentioned = set(re.findall(r"`([A-Z]\w+)(?:\.\w+)?`", TEXT.partition("## What is not here")[0]))
    of_langgraph = {"Send", "END", "START", "InMemorySaver", "TypedDict"}
    codes = {code.name for code in strata_core.FailureCode} | {policy.name for policy in strata_core.CheckpointPolicy}

    assert mentioned - of_langgraph - codes <= set(strata_core.__all__)
    assert {"NodeRetrying", "CheckpointSaved", "EVERY_NODE"} <= mentioned


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        path, _, anchor = target.partition("#")
        document = PAGE.parent / path if path else PAGE
        assert document.is_file(), target
        headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, target


@pytest.mark.parametrize("document", ["README.md", "strata-core/GUIDE.md", "strata-core/README.md"])
def test_it_is_found_from(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))

    assert PAGE in [(path.parent / link).resolve() for link in links]
