"""Any state of any documented type: it reads back equal and of its own types, or it is refused with its path."""

from __future__ import annotations

import asyncio
import copy
import os
from typing import Any
from uuid import uuid4

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from types_support import KINDS, LEAVES, Typed, json_of, mutations, states, typed

from strata_core import open_store
from strata_core.codec import check_json, load_json
from strata_core.codec import dump_json as dump
from strata_core.errors import InvalidInputError, RehydrationError
from strata_core.graph import CheckpointPolicy, Completed, HumanSignal, Interrupted, StateGraph
from strata_core.graph._rebuilding import is_same
from strata_core.graph._state import StateCodec

pytestmark = pytest.mark.once("types: of a state, a store is given the JSON")

SOAK = bool(os.environ.get("STRATA_SOAK"))
new: Any = StateGraph
new_codec: Any = StateCodec


def examples(number: int) -> settings:
    """Take so many examples, and a hundred times as many where the large numbers are run."""
    return settings(
        max_examples=number * 100 if SOAK else number, deadline=None, suppress_health_check=list(HealthCheck)
    )


async def through_a_store(found: Typed, policy: CheckpointPolicy) -> tuple[Any, Any]:
    """Stop with a state, and go on with it in another store object, by a graph that is built anew."""

    def build() -> Any:
        graph = new(found.type).add_node("A", lambda state: state).add_interrupt_boundary("A")
        return graph.add_node("B", lambda state: state).add_edge("A", "B").compile(checkpointing=policy)

    url = f"memory://{uuid4()}"
    async with open_store(url) as store:
        stopped = await build().run("t", found.value, store)
        async with open_store(url) as other:
            return stopped, await build().resume("t", HumanSignal.approve("ann"), other)


@pytest.mark.parametrize("kind", KINDS)
@examples(8)
@given(data=st.data())
def test_what_a_run_stops_with_is_what_it_goes_on_with(kind: str, data: st.DataObject) -> None:
    found = data.draw(states(kind))
    policy = data.draw(st.sampled_from(CheckpointPolicy))
    try:
        stopped, result = asyncio.run(through_a_store(found, policy))
    except InvalidInputError as error:
        by_pydantic = holds_a_model(found.value) and error.argument.startswith("state.")
        assert by_pydantic, f"a documented value is refused only by a validation of pydantic's own: {error}"  # noqa: PT017
    else:
        assert isinstance(stopped, Interrupted)
        assert isinstance(result, Completed)
        assert is_same(found.value, result.state)


def holds_a_model(value: Any) -> bool:
    return "model_fields" in dir(type(value)) or "P(" in repr(value)


@examples(40)
@given(declared=typed, other=st.sampled_from(LEAVES).flatmap(lambda pair: pair[1]))
def test_a_value_of_another_type_reads_back_as_itself_or_is_refused_with_its_path(declared: Typed, other: Any) -> None:
    cls: Any = attrs.make_class("Holder", {"it": attrs.field(type=declared.type)})
    codec = new_codec(cls)
    try:
        content = codec.dump(cls(other))
        check_json(content)
    except InvalidInputError as error:
        assert error.argument.startswith("state.it")  # noqa: PT017  # either is right
    else:
        again = codec.load(load_json(dump(content))).it
        assert is_same(other, again) or (type(other) is int and type(again) is float and other == again)


@pytest.mark.parametrize("kind", KINDS)
@examples(12)
@given(data=st.data())
def test_json_that_somebody_changed_is_refused_with_its_path_or_is_what_it_says(kind: str, data: st.DataObject) -> None:
    found = data.draw(states(kind))
    codec = new_codec(found.type)
    try:
        content = codec.dump(found.value)
    except InvalidInputError:
        return
    changed = copy.deepcopy(content)
    container, step = data.draw(st.sampled_from(json_of(changed)))
    container[step] = data.draw(st.sampled_from(mutations(container[step])))
    try:
        state = codec.load(changed)
    except RehydrationError as error:
        assert error.path.startswith("state")  # noqa: PT017  # either is right
    else:
        try:
            written = codec.dump(state)
        except InvalidInputError:
            pytest.fail(f"{changed} became {state!r}, which cannot be saved")
        assert says_the_same(changed, written), (changed, state)


def says_the_same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal: in numbers 1 is 1.0 and True is not 1, and the items of sets move."""
    if type(one) is dict and type(other) is dict:
        return one.keys() == other.keys() and all(says_the_same(item, other[key]) for key, item in one.items())
    if type(one) is list and type(other) is list:
        rest = list(other)
        for item in one:
            match = next((number for number, other in enumerate(rest) if says_the_same(item, other)), None)
            if match is None:
                return False
            del rest[match]
        return not rest
    if {type(one), type(other)} <= {int, float}:
        return bool(one == other)
    return type(one) is type(other) and one == other
