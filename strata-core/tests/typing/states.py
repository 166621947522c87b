"""What type checkers say of state classes; they only read this file, in `tox -e types`."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypedDict, TypeVar, assert_type

import attrs
import msgspec
import pydantic

from strata_core import Completed, RunResult, StateGraph, strict_converter
from strata_core.graph import CompiledGraph

T = TypeVar("T")


@attrs.frozen
class Attrs:
    n: int


@dataclasses.dataclass
class Data:
    n: int


class Typed(TypedDict):
    n: int


class Struct(msgspec.Struct, frozen=True):
    n: int


class Model(pydantic.BaseModel):
    n: int


@attrs.frozen
class Box(Generic[T]):
    item: T


def number(state: Typed) -> Typed:
    return {"n": state["n"] + 1}


assert_type(StateGraph(Attrs), StateGraph[Attrs])
assert_type(StateGraph(Data), StateGraph[Data])
assert_type(StateGraph(Typed), StateGraph[Typed])
assert_type(StateGraph(Struct), StateGraph[Struct])
assert_type(StateGraph(Model), StateGraph[Model])
assert_type(StateGraph(Box[int]), StateGraph[Box[int]])
assert_type(StateGraph(dict[str, int]), StateGraph[dict[str, int]])
assert_type(StateGraph(dict[str, Any], converter=strict_converter()), StateGraph[dict[str, Any]])

typed = StateGraph(Typed).add_node("A", number).compile()
boxes = StateGraph(Box[int]).add_node("A", lambda box: Box(box.item + 1)).compile()
assert_type(typed, CompiledGraph[Typed])


async def results_are_of_the_class() -> None:
    assert_type(await typed.run("t", {"n": 1}), RunResult[Typed])
    await typed.run("t", {"n": "1"})  # type: ignore[typeddict-item] # pyright: ignore[reportArgumentType]
    result = await boxes.run("t", Box(1))
    if isinstance(result, Completed):
        assert_type(result.state, Box[int])
    await boxes.run("t", Box("1"))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    model = await StateGraph(Model).add_node("A", lambda model: model).compile().run("t", Model(n=1))
    if isinstance(model, Completed):
        assert_type(model.state, Model)
