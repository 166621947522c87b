"""States as text: whatever the short way does, it is what the long way would have done."""

from __future__ import annotations

import asyncio
import enum
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict

import attrs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from types_support import KINDS, LEAVES, Typed, states, typed

from strata_core import Checkpoint, CheckpointPolicy, CheckpointStatus, Deltas, StateGraph, open_store
from strata_core.codec import dump_json, encode_record
from strata_core.codec._encoded import EncodedState
from strata_core.errors import InvalidInputError
from strata_core.graph._state import StateCodec, strict_converter

pytestmark = pytest.mark.once("encoding: a store is given the text")

SOAK = bool(os.environ.get("STRATA_SOAK"))
new: Any = StateGraph
new_codec: Any = StateCodec


def examples(number: int) -> settings:
    """Take so many examples, and a hundred times as many where the large numbers are run."""
    return settings(
        max_examples=number * 100 if SOAK else number, deadline=None, suppress_health_check=list(HealthCheck)
    )


def long_way(codec: Any, state: Any) -> Any:
    """Return the text, or the argument and the problem."""
    try:
        return dump_json(codec.dump(state))
    except InvalidInputError as error:
        return error.argument, error.problem


def short_way(codec: Any, state: Any) -> Any:
    """Return the same of the text that a store is given."""
    try:
        return codec.encode(state).text
    except InvalidInputError as error:
        return error.argument, error.problem


class Word(str):
    __slots__ = ()


class Count(int):
    pass


class Share(float):
    pass


class Colour(enum.StrEnum):
    RED = "red"


@attrs.frozen
class Inner:
    name: str = "i"
    of: Inner | None = None


HARD = [
    "", "plain", 'a "quoted" \\ one', "line\nend\t\x00\x1f\x7f", "ä\u2028\U0001f600", "\ud800", "x" * 5000,
    0, -1, 10**4299, 10**4300 - 1, 10**4300, -(10**4300), 2**63, True, False, None,
    0.0, -0.0, 1.5, 1e300, 5e-324, float("nan"), float("inf"), float("-inf"),
    Word("word"), Count(3), Share(0.5), Colour.RED, b"bytes", datetime(2026, 1, 1, tzinfo=UTC),
    [], ["a", "b"], ["a", Word("b")], ["a", 1], ["\udfff"], ("a", "b"), ("a", None), [["a"]], {"a": 1}, {1: 2},
    {"k": float("nan")}, Inner(), Inner("j", Inner("k")), Inner(Word("j")), object(),
]  # fmt: skip
FIELDS = [
    str, int, bool, float, Any, list[str], tuple[str, ...], tuple[str, str], list[int], list[float], set[str],
    dict[str, Any], str | None, None | int, float | None, bool | None, str | int, str | None | int,
    list[str] | None, Colour, datetime, bytes, Inner, Inner | None, list[Inner],
]  # fmt: skip


@pytest.mark.parametrize("declared", FIELDS, ids=str)
def test_every_value_in_a_field_of_every_type_becomes_the_same_text_or_the_same_refusal(declared: Any) -> None:
    cls: Any = attrs.make_class("Holder", {"before": attrs.field(type=str), "it": attrs.field(type=declared)})
    codec = new_codec(cls)

    for value in HARD:
        assert long_way(codec, cls("b", value)) == short_way(codec, cls("b", value)), value


@pytest.mark.parametrize("kind", KINDS)
@examples(6)
@given(data=st.data())
def test_every_documented_state_becomes_the_same_text(kind: str, data: st.DataObject) -> None:
    found = data.draw(states(kind))
    codec = new_codec(found.type)

    assert long_way(codec, found.value) == short_way(codec, found.value)


@examples(40)
@given(declared=typed, other=st.sampled_from(LEAVES).flatmap(lambda pair: pair[1]))
def test_a_value_of_another_type_becomes_the_same_text_or_the_same_refusal(declared: Typed, other: Any) -> None:
    cls: Any = attrs.make_class("Holder", {"it": attrs.field(type=declared.type)})
    codec = new_codec(cls)

    assert long_way(codec, cls(other)) == short_way(codec, cls(other))


@pytest.mark.parametrize("depth", [198, 199, 200, 5000])
def test_nesting_is_refused_at_the_same_depth(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth - 1):
        nested = [nested]
    codec = new_codec(attrs.make_class("Holder", {"it": attrs.field(type=Any)}))

    assert long_way(codec, codec.cls(nested)) == short_way(codec, codec.cls(nested))
    assert (depth < 200) is isinstance(short_way(codec, codec.cls(nested)), bytes)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    codec = new_codec(attrs.make_class("Holder", {"it": attrs.field(type=Any)}))

    assert long_way(codec, codec.cls(loop)) == short_way(codec, codec.cls(loop))


def test_a_program_may_let_the_interpreter_write_more_digits_than_a_state_may_have() -> None:
    codec = new_codec(attrs.make_class("Holder", {"it": attrs.field(type=int)}))
    before = sys.get_int_max_str_digits()
    try:
        for limit in (0, 5000, 700):
            sys.set_int_max_str_digits(limit)

            assert long_way(codec, codec.cls(10**4300)) == short_way(codec, codec.cls(10**4300))
            assert long_way(codec, codec.cls(10**900)) == short_way(codec, codec.cls(10**900))
            assert long_way(codec, codec.cls(7)) == short_way(codec, codec.cls(7))
    finally:
        sys.set_int_max_str_digits(before)


@attrs.frozen
class Nothing:
    pass


class Tagged(msgspec.Struct, tag_field="the '{kind}'", tag='"it\'s" {one}', rename=lambda name: f"{{{name}}}'"):
    name: str = "n"


class OnlyTagged(msgspec.Struct, tag=True):
    pass


class Notes(TypedDict):
    text: str


@attrs.define
class Counted:
    number: int = attrs.field(default=0, converter=int)
    text: str = "t"

    def __attrs_post_init__(self) -> None:
        self.text = self.text.upper()


@attrs.frozen
class Other:
    name: str = "i"
    of: Inner | None = None


@pytest.mark.parametrize(
    ("tp", "state"),
    [
        (Nothing, Nothing()),
        (Tagged, Tagged()),
        (OnlyTagged, OnlyTagged()),
        (Notes, {"text": "t"}),
        (dict, {"any": ["thing"]}),
        (dict, {"any": float("nan")}),
        (Counted, Counted(1)),
        (Inner, Other()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_kind_of_class_becomes_the_same_text_or_the_same_refusal(tp: Any, state: Any) -> None:
    codec = new_codec(tp)

    assert long_way(codec, state) == short_way(codec, state)


def test_what_a_class_would_make_of_its_fields_is_checked_as_well() -> None:
    state = Counted(1)
    state.text = "lower"

    assert ("state.text", long_way(new_codec(Counted), state)[1]) == short_way(new_codec(Counted), state)


def test_a_value_that_a_field_converter_would_change_again_is_refused_as_well() -> None:
    state = Counted(1)
    object.__setattr__(state, "number", "2")  # past the converter

    assert "state.number" == long_way(new_codec(Counted), state)[0]
    assert long_way(new_codec(Counted), state) == short_way(new_codec(Counted), state)


def test_a_hook_of_the_users_own_is_asked_also_for_a_plain_type() -> None:
    converter = strict_converter()
    converter.register_unstructure_hook(str, str.upper)
    converter.register_structure_hook(str, lambda text, _: text.lower())
    codec: StateCodec[Inner] = StateCodec(Inner, converter)

    assert b'{"name":"N","of":null}' == codec.encode(Inner("n")).text


async def given_by_a_run(wrap: Any, **options: Any) -> list[Any]:
    """Return the states that a store was given, and those that it has kept."""
    given: list[Any] = []

    class Watching:
        """A store of somebody else's, in front of another one."""

        def __init__(self, store: Any) -> None:
            self.store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self.store, name)

        async def save_under_lease(self, checkpoint: Checkpoint, *args: Any, **options: Any) -> int:
            given.append(checkpoint.frozen_state)
            kept: int = await self.store.save_under_lease(checkpoint, *args, **options)
            return kept

    graph = new(Inner).add_node("A", lambda state: Inner("a")).add_node("B", lambda state: Inner("b", state))
    async with open_store("memory://", **options) as store:
        compiled = graph.add_edge("A", "B").compile(checkpointing=CheckpointPolicy.EVERY_NODE)
        await compiled.run("t", Inner(), Watching(store) if wrap else store)
        log = await store.get_log("t")
    return given or [entry.checkpoint.frozen_state for entry in log.entries]


def test_a_store_of_somebody_elses_is_given_dicts() -> None:
    assert [{"name": "a", "of": None}, {"name": "b", "of": {"name": "a", "of": None}}] == (
        given := asyncio.run(given_by_a_run(True))
    )
    assert [dict, dict] == [type(state) for state in given]


@pytest.mark.parametrize("options", [{}, {"deltas": Deltas()}], ids=["whole", "deltas"])
def test_the_same_states_are_kept_either_way(options: dict[str, Any]) -> None:
    expected: list[Mapping[str, Any]] = [
        {"name": "i", "of": None},
        {"name": "a", "of": None},
        {"name": "b", "of": {"name": "a", "of": None}},
    ]

    assert expected == asyncio.run(given_by_a_run(False, **options))


def test_an_encoded_state_is_what_its_text_says_wherever_a_state_may_stand() -> None:
    state = EncodedState(b'{"name":"n","of":[1,null]}')
    checkpoint = Checkpoint("t", CheckpointStatus.RUNNING, state, datetime(2026, 1, 1, tzinfo=UTC))

    async def kept() -> Any:
        async with open_store("memory://", deltas=Deltas()) as store:
            await store.save(checkpoint)
            entry = await store.load("t")
            assert entry is not None
            return entry.checkpoint.frozen_state

    assert {"name": "n", "of": [1, None]} == state
    assert ["name", "of"] == list(state)
    assert 2 == len(state)
    assert {"name": "n", "of": [1, None]} == encode_record(checkpoint)["frozen_state"]
    assert {"name": "n", "of": [1, None]} == asyncio.run(kept())
