"""STATE.md: its blocks are one program that prints what it says, and its tables are what the engine does."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions

from strata_core.codec import check_json, dump_json, load_json
from strata_core.errors import GraphValidationError, InvalidInputError
from strata_core.graph import StateGraph
from strata_core.graph._rebuilding import is_same
from strata_core.graph._state import StateCodec

pytestmark = pytest.mark.once("types: of a state, a store is given the JSON")

PAGE: Final = (Path(__file__).parents[2] / "STATE.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

new: Any = StateGraph
new_codec: Any = StateCodec
make_typed_dict: Any = typing_extensions.TypedDict


@cache
def page() -> tuple[dict[str, Any], str]:
    """Return what the program of the page defines, and what it prints."""
    module = types.ModuleType("state_page")
    sys.modules["state_page"] = module  # where annotations are looked up
    printed = io.StringIO()
    program = "\n\n".join(code for language, code in BLOCKS if language == "python")
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "STATE.md", "exec"), vars(module))
    return vars(module), printed.getvalue()


def table(heading: str, columns: int) -> list[list[str]]:
    """Return the rows of a section's table that has so many columns; without what marks cells as code."""
    section = PAGE[PAGE.index(f"\n## {heading}\n") :].split("\n## ", 2)[1]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in rows if len(row) == columns]
    assert all(all(row) for row in cells), "no cell is empty"
    return [[cell[1:-1] if cell[0] == cell[-1] == "`" else cell for cell in row] for row in cells[2:]]


def evaluate(text: str) -> Any:
    return eval(text, page()[0])


HOLDERS: Final[dict[str, Any]] = {
    "attrs": lambda tp: attrs.make_class("Holder", {"field": attrs.field(type=tp)}, frozen=True),
    "dataclass": lambda tp: dataclasses.make_dataclass("Holder", [("field", tp)], slots=True),
    "TypedDict": lambda tp: make_typed_dict("Holder", {"field": tp}),
    "msgspec": lambda tp: msgspec.defstruct("Holder", [("field", tp)]),
    "pydantic": lambda tp: pydantic.create_model(
        "Holder", __config__=pydantic.ConfigDict(arbitrary_types_allowed=True), field=(tp, ...)
    ),
    "dict": lambda tp: dict.__class_getitem__((str, tp)),
}
IN_EVERY_CLASS = pytest.mark.parametrize("holder", HOLDERS)


def hold(holder: str, tp: Any, value: Any) -> tuple[Any, Any]:
    """Return a class with a field of that type, and an instance with that value."""
    cls = HOLDERS[holder](tp)
    return cls, {"field": value} if holder in ("TypedDict", "dict") else cls(field=value)


def test_the_program_prints_what_the_page_says() -> None:
    assert "".join(code for language, code in BLOCKS if language == "text") == page()[1]
    assert {"python", "text"} == {language for language, _ in BLOCKS}


@IN_EVERY_CLASS
@pytest.mark.parametrize(("declared", "example", "written"), [(row[0], row[2], row[3]) for row in table("Values", 4)])
def test_a_value_is_written_as_the_page_says_and_reads_back_as_itself(
    declared: str, example: str, written: str, holder: str
) -> None:
    value = evaluate(example)
    cls, state = hold(holder, evaluate(declared), value)
    codec = new_codec(cls)
    text = dump_json(codec.dump(state))

    assert f'{{"field":{written}}}' == text.decode()
    again = codec.load(load_json(text))
    assert is_same(state, again)
    field = again["field"] if isinstance(again, dict) else again.field
    assert (type(value), value) == (type(field), field)
    assert "<CompiledGraph" in repr(new(cls).add_node("A", lambda state: state).compile())


@pytest.mark.parametrize("holder", ["attrs", "dataclass", "TypedDict", "msgspec", "pydantic", "dict"])
@pytest.mark.parametrize("declared", [row[0] for row in table("Refused", 2)])
def test_a_type_that_the_page_says_is_refused_does_not_compile(declared: str, holder: str) -> None:
    cls = HOLDERS[holder](evaluate(declared))

    with pytest.raises(GraphValidationError) as caught:
        new(cls).add_node("A", lambda state: state).compile()

    (problem,) = caught.value.problems
    assert "STRATA_ERR_UNSUPPORTED_TYPE" == problem.code
    assert problem.text.startswith("state[]: " if holder == "dict" else "state.field: ")
    assert "declare another type, or give StateGraph a converter" in problem.text


@pytest.mark.parametrize(("declared", "example", "error"), table("Refused", 3))
def test_a_value_that_the_page_says_is_refused_has_that_error_when_it_is_saved(
    declared: str, example: str, error: str
) -> None:
    cls, state = hold("attrs", evaluate(declared), evaluate(example))

    with pytest.raises(InvalidInputError) as caught:
        check_json(new_codec(cls).dump(state))

    assert error == str(caught.value)


def test_the_page_has_its_tables() -> None:
    assert 35 < len(table("Values", 4))
    assert 10 < len(table("Refused", 2))
    assert 10 < len(table("Refused", 3))
