"""State types: what is saved, what reads back, and what is refused with its path."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import json
import threading
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_core.errors import InvalidInputError, RehydrationError
from strata_core.graph import (
    CheckpointPolicy,
    Completed,
    Failed,
    FailureCode,
    HumanSignal,
    Interrupted,
    RetryPolicy,
    StateGraph,
    strict_converter,
)
from strata_core.graph._copying import isolate
from strata_core.graph._state import StateCodec
from strata_core.records import GraphIdentity

pytestmark = pytest.mark.once("types, copies and messages: of a state, a store is given the JSON")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

new_codec: Any = StateCodec
BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
Cents = NewType("Cents", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Line:
    price: float
    sku: str = "x"


@dataclasses.dataclass(frozen=True)
class Address:
    city: str
    zip: str | None = None


class Note(TypedDict):
    text: str
    by: NotRequired[str]


@attrs.frozen
class Everything:
    flag: bool
    count: int
    ratio: float
    name: str
    nothing: None
    amount: Decimal
    key: UUID
    at: datetime
    day: date
    colour: Colour
    level: Level
    mode: Literal["a", 1, None]  # noqa: PYI061  # None inside a Literal is a form of its own  # None inside a Literal is a form of its own
    lines: list[Line]
    pair: tuple[int, str]
    many: tuple[Line, ...]
    by_name: dict[str, Address]
    maybe: Line | None
    either: int | str | None
    note: Note
    cents: Cents
    tagged: Annotated[str, "a tag"]
    anything: Any
    parent: Everything | None = None
    _private: int = 7


@attrs.frozen
class Tree:
    children: list[Tree]
    size: Annotated[int, ["this cannot be hashed"]]


def everything(**changes: Any) -> Everything:
    values: dict[str, Any] = {
        "flag": True,
        "count": 3,
        "ratio": 0.5,
        "name": "n\0é",
        "nothing": None,
        "amount": Decimal("4150.250"),
        "key": UUID("12345678-1234-5678-1234-567812345678"),
        "at": datetime(2026, 10, 30, 14, 49, 52, 7, tzinfo=timezone(timedelta(hours=2))),
        "day": date(2026, 10, 30),
        "colour": Colour.BLUE,
        "level": Level.HIGH,
        "mode": 1,
        "lines": [Line(1.5), Line(2)],
        "pair": (1, "x"),
        "many": (Line(3.0, "y"),),
        "by_name": {"home": Address("Bern")},
        "maybe": None,
        "either": "text",
        "note": {"text": "hi"},
        "cents": Cents(5),
        "tagged": "t",
        "anything": {"free": [1, None]},
    }
    return Everything(**(values | changes))


class TestRoundTrip:
    def test_every_type_has_its_json_form_and_reads_back_as_itself(self) -> None:
        codec: StateCodec[Everything] = StateCodec(Everything)
        state = everything(parent=everything(), private=8)
        content = codec.dump(state)

        assert state == codec.load(content)
        assert "4150.250" == content["amount"]
        assert "2026-10-30T14:49:52.000007+02:00" == content["at"]
        assert ["blue", 2, 1] == [content["colour"], content["level"], content["mode"]]
        assert [1, "x"] == content["pair"]
        assert {"home": {"city": "Bern", "zip": None}} == content["by_name"]
        assert 8 == content["_private"]
        assert list(content) == [field.name for field in attrs.fields(Everything)]

    def test_utc_is_written_with_a_z(self) -> None:
        codec: StateCodec[Everything] = StateCodec(Everything)

        assert "2026-10-30T00:00:00Z" == codec.dump(everything(at=datetime(2026, 10, 30, tzinfo=UTC)))["at"]

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"flag": 1}, "state.flag"),
            ({"count": True}, "state.count"),
            ({"count": "3"}, "state.count"),
            ({"count": Level.LOW}, "state.count"),
            ({"ratio": "0.5"}, "state.ratio"),
            ({"ratio": Decimal(1)}, "state.ratio"),
            ({"name": Colour.RED}, "state.name"),
            ({"amount": 4150.25}, "state.amount"),
            ({"amount": Decimal("NaN")}, "state.amount"),
            ({"at": datetime(2026, 1, 1)}, "state.at"),  # noqa: DTZ001
            ({"day": datetime(2026, 1, 1, tzinfo=UTC)}, "state.day"),
            ({"colour": "red"}, "state.colour"),
            ({"mode": True}, "state.mode"),
            ({"lines": (Line(1.0),)}, "state.lines"),
            ({"lines": [Line(1.0), Line("2")]}, "state.lines[1].price"),  # type: ignore[arg-type]
            ({"pair": [1, "x"]}, "state.pair"),
            ({"pair": (1, 2)}, "state.pair[1]"),
            ({"by_name": {"a": Line(1.0)}}, "state.by_name.a"),
            ({"either": 1.5}, "state.either"),
            ({"note": {"by": "me"}}, "state.note.text"),
            ({"note": {"text": "hi", "extra": 1}}, "state.note.extra"),
            ({"parent": everything(count=None)}, "state.parent.count"),
        ],
    )
    def test_what_would_not_read_back_as_itself_is_refused_when_it_is_saved(
        self, changes: dict[str, Any], path: str
    ) -> None:
        codec: StateCodec[Everything] = StateCodec(Everything)

        with pytest.raises(InvalidInputError) as caught:
            codec.dump(everything(**changes))

        assert path == caught.value.argument

    def test_a_subclass_is_refused_rather_than_cut_down(self) -> None:
        @attrs.frozen
        class Special(Line):
            extra: int = 1

        with pytest.raises(InvalidInputError, match=r"^state\.maybe: must be of type Line, not .*Special"):
            new_codec(Everything).dump(everything(maybe=Special(1.0)))

    @pytest.mark.parametrize(
        ("key", "value", "path"),
        [
            ("count", "3", "state.count"),
            ("count", 3.0, "state.count"),
            ("count", True, "state.count"),
            ("flag", 1, "state.flag"),
            ("ratio", "0.5", "state.ratio"),
            ("ratio", True, "state.ratio"),
            ("name", 5, "state.name"),
            ("amount", 4150.25, "state.amount"),
            ("amount", "abc", "state.amount"),
            ("amount", "Infinity", "state.amount"),
            ("key", "{12345678-1234-5678-1234-567812345678}", "state.key"),
            ("at", "2026-10-30T14:49:52", "state.at"),
            ("at", "soon", "state.at"),
            ("day", "2026-W01-1", "state.day"),
            ("colour", "green", "state.colour"),
            ("level", True, "state.level"),
            ("mode", [], "state.mode"),
            ("lines", [{"price": 1.0}, {"price": "1"}], "state.lines[1].price"),
            ("lines", {}, "state.lines"),
            ("pair", [1], "state.pair"),
            ("by_name", {"a": {"city": 1}}, "state.by_name.a.city"),
            ("by_name", {"a": {}}, "state.by_name.a.city"),
            ("maybe", {"price": 1.0, "colour": 1}, "state.maybe.colour"),
            ("note", {"text": "a", "x": 1}, "state.note.x"),
            ("nobody_knows", 1, "state.nobody_knows"),
        ],
    )
    def test_json_that_does_not_fit_is_refused_with_its_path(self, key: str, value: Any, path: str) -> None:
        codec: StateCodec[Everything] = StateCodec(Everything)
        content = codec.dump(everything())

        with pytest.raises(RehydrationError) as caught:
            codec.load({**content, key: value})

        assert path == caught.value.path

    def test_types_may_contain_themselves_and_carry_annotations_of_any_kind(self) -> None:
        codec: StateCodec[Tree] = StateCodec(Tree)
        tree = Tree([Tree([], 1), Tree([Tree([], 3)], 2)], 0)

        assert tree == codec.load(codec.dump(tree))
        with pytest.raises(RehydrationError, match=r"^state\.children\[0\]\.size: must be an int, not str"):
            codec.load({"children": [{"children": [], "size": "1"}], "size": 0})

    def test_an_int_fits_a_float_field(self) -> None:
        found = new_codec(Line).load({"price": 4150})

        assert (4150.0, float) == (found.price, type(found.price))
        assert 2**60 + 1 == new_codec(Line).load({"price": 2**60 + 1}).price

    def test_a_missing_field_takes_its_default_and_a_required_one_is_named(self) -> None:
        assert Line(1.0, "x") == new_codec(Line).load({"price": 1.0})
        with pytest.raises(RehydrationError, match=r"^state\.price: is missing"):
            new_codec(Line).load({"sku": "x"})

    def test_a_validator_of_the_class_has_its_say(self) -> None:
        @attrs.frozen
        class Positive:
            n: int = attrs.field(validator=attrs.validators.gt(0))

        with pytest.raises(RehydrationError, match=r"Positive refuses it: ValueError"):
            new_codec(Positive).load({"n": 0})


class Plain(enum.Enum):
    X = "x"


class Text(enum.StrEnum):
    X = "x"


class Mixed(str, enum.Enum):  # noqa: UP042  # the older way to write it
    X = "x"


class Number(int, enum.Enum):
    X = 1


class TestEnums:
    @pytest.mark.parametrize("kind", [Plain, Text, Mixed, Number, Level])
    @pytest.mark.parametrize(
        ("declared", "wrap"),
        [
            ("kind", lambda member: member),
            ("kind | None", lambda member: member),
            ("list[kind]", lambda member: [member]),
            ("dict[str, kind]", lambda member: {"k": member}),
            ("tuple[kind, ...]", lambda member: (member,)),
            ("tuple[int, kind]", lambda member: (1, member)),
        ],
    )
    def test_every_kind_of_enum_reads_back_as_itself_wherever_it_stands(
        self, kind: Any, declared: str, wrap: Any
    ) -> None:
        value = wrap(next(iter(kind)))
        cls: Any = attrs.make_class("Holder", {"it": attrs.field(type=eval(declared, {"kind": kind}))})
        codec = new_codec(cls)
        content = codec.dump(cls(value))
        again = codec.load(json.loads(json.dumps(content)))

        assert repr(cls(value)) == repr(again)

    def test_a_text_that_is_no_member_and_a_member_that_is_no_text_are_refused(self) -> None:
        cls: Any = attrs.make_class("Holder", {"text": attrs.field(type=str), "it": attrs.field(type=Text)})

        with pytest.raises(InvalidInputError, match=r"^state\.it: must be of type Text, not str"):
            new_codec(cls).dump(cls("x", "x"))
        with pytest.raises(InvalidInputError, match=r"^state\.text: must be a str, not .*Text"):
            new_codec(cls).dump(cls(Text.X, Text.X))

    def test_a_hook_for_one_of_them_is_asked_instead(self) -> None:
        converter = strict_converter()
        converter.register_unstructure_hook(Text, lambda value: value.name)
        converter.register_structure_hook(Text, lambda value, _: Text[value])
        cls: Any = attrs.make_class("Holder", {"it": attrs.field(type=Text)})

        assert {"it": "X"} == new_codec(cls, converter).dump(cls(Text.X))
        assert cls(Text.X) == new_codec(cls, converter).load({"it": "X"})


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    DELETE = 4
    BOTH = 3


class Bits(enum.IntFlag):
    LOW = 1
    HIGH = 2


class TestFlags:
    @pytest.mark.parametrize(
        "value",
        [Access.READ, Access.BOTH, Access.READ | Access.DELETE, Access(0), Bits.LOW | Bits.HIGH, Bits.LOW | 64],
    )
    def test_members_and_what_they_make_together_are_saved_as_their_number(self, value: Any) -> None:
        cls: Any = attrs.make_class("Granted", {"access": attrs.field(type=type(value))})
        codec = new_codec(cls)

        assert {"access": int(value.value)} == codec.dump(cls(value))
        again = codec.load(codec.dump(cls(value))).access
        assert (type(value), value) == (type(again), again)

    @pytest.mark.parametrize("number", [8, -1, "READ", True, 1.0])
    def test_a_number_that_is_none_of_theirs_is_refused_when_it_is_read(self, number: Any) -> None:
        cls: Any = attrs.make_class("Granted", {"access": attrs.field(type=Access)})

        with pytest.raises(RehydrationError, match=r"^state\.access: must be the number of"):
            new_codec(cls).load({"access": number})


class TestFieldConverters:
    """A constructor runs them again at every resume."""

    def test_one_that_keeps_its_own_results_is_fine(self) -> None:
        cls: Any = attrs.make_class(
            "Tags",
            {
                "tags": attrs.field(type=tuple[str, ...], converter=tuple),
                "name": attrs.field(type=str, default=" a ", converter=attrs.converters.optional(str.strip)),
            },
        )
        codec = new_codec(cls)

        assert {"tags": ["a", "b"], "name": "a"} == codec.dump(cls(["a", "b"]))
        assert cls(("a", "b")) == codec.load(codec.dump(cls(["a", "b"])))

    @pytest.mark.parametrize(
        ("convert", "problem"),
        [(lambda value: value + 1, "changes its own result"), (lambda value: [][value], "refuses its own result")],
    )
    def test_one_that_would_change_the_state_at_every_resume_is_refused_when_it_is_saved(
        self, convert: Any, problem: str
    ) -> None:
        cls: Any = attrs.make_class("Drifting", {"n": attrs.field(type=int, converter=convert)})
        state = object.__new__(cls)
        state.n = 1

        with pytest.raises(InvalidInputError, match=rf"^state\.n: its converter {problem}"):
            new_codec(cls).dump(state)


class TestConverters:
    def test_a_strict_converter_can_be_taught_more_types(self) -> None:
        converter = strict_converter()
        converter.register_unstructure_hook(complex, lambda value: [value.real, value.imag])
        converter.register_structure_hook(complex, lambda value, _: complex(*value))

        @attrs.frozen
        class Signal:
            z: complex

        codec: StateCodec[Signal] = StateCodec(Signal, converter)

        assert {"z": [1.0, 2.0]} == codec.dump(Signal(1 + 2j))
        assert Signal(1 + 2j) == codec.load({"z": [1.0, 2.0]})
        assert "<CompiledGraph" in repr(new(Signal, converter=converter).add_node("A", lambda state: state).compile())

    def test_errors_of_a_foreign_converter_keep_their_path(self) -> None:
        import cattrs

        codec: StateCodec[Everything] = StateCodec(Line, cattrs.Converter(forbid_extra_keys=True))

        with pytest.raises(RehydrationError) as caught:
            codec.load({"price": "much"})

        assert "state.price" == caught.value.path


class TestCopies:
    json = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
        max_leaves=20,
    )

    @given(json)
    def test_a_copy_is_equal_and_shares_nothing_that_can_change(self, value: Any) -> None:
        copied = isolate(value)

        assert value == copied
        assert not self.containers(value) & self.containers(copied)

    def containers(self, value: Any) -> set[int]:
        found = {id(value)} if isinstance(value, list | dict) else set()
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
            found |= self.containers(item)
        return found

    def test_a_mutable_object_deep_inside_frozen_ones_is_copied_and_the_rest_is_shared(self) -> None:
        @attrs.frozen
        class Box:
            inside: Any
            frozen: Any = (1, (2, "x"))

        value = Box((Box([1]), Box(2)))
        copied = isolate(value)
        copied.inside[0].inside.append(2)

        assert Box((Box([1]), Box(2))) == value
        assert value.inside[1] is copied.inside[1]
        assert value.frozen is copied.frozen

    def test_other_objects_are_copied_as_copy_does(self) -> None:
        class Plain:
            def __init__(self) -> None:
                self.items = [1]

        value = {"plain": Plain(), "set": {1, 2}, "frozen": frozenset({3})}
        copied = isolate(value)
        copied["plain"].items.append(2)
        copied["set"].add(9)

        assert [1] == value["plain"].items  # type: ignore[attr-defined]
        assert {1, 2} == value["set"]
        assert value["frozen"] is copied["frozen"]

    def test_a_frozen_dataclass_without_slots_keeps_what_else_it_holds(self) -> None:
        @dataclasses.dataclass(frozen=True)
        class Cached:
            items: list[int]

        value = Cached([1])
        object.__setattr__(value, "_cache", "kept")
        copied = isolate(value)

        assert "kept" == copied._cache
        assert value.items == copied.items
        assert value.items is not copied.items

    def test_what_else_a_frozen_object_holds_is_no_way_around_the_copy(self) -> None:
        @dataclasses.dataclass(frozen=True)
        class Named:
            name: str = "n"

        value: Any = Named()
        object.__setattr__(value, "_extra", [1])
        isolate(value)._extra.append(2)

        assert [1] == value._extra

    @pytest.mark.parametrize("make", [dataclasses.dataclass(frozen=True), attrs.frozen, attrs.frozen(slots=False)])
    def test_what_a_failing_node_did_to_a_cached_property_is_forgotten(self, make: Any) -> None:
        @make
        class Cached:
            n: int = 0

            @functools.cached_property
            def seen(self) -> list[int]:
                return []

        found: list[list[int]] = []

        def node(state: Any) -> Any:
            state.seen.append(len(found))
            found.append(list(state.seen))
            if len(found) < 3:
                raise ValueError
            return state

        computed = Cached()
        computed.seen.append(99)
        for state in (Cached(), computed):
            found.clear()
            asyncio.run(new(Cached).add_node("A", node, retry=RetryPolicy(3)).compile().run("t", state))

            assert [[0], [1], [2]] == found

    def test_a_frozen_object_with_a_dict_and_nothing_else_in_it_is_its_own_copy(self) -> None:
        @dataclasses.dataclass(frozen=True)
        class Named:
            name: str = "n"

        value = Named()

        assert value is isolate(value)


def waiting(world: Any, policy: CheckpointPolicy, state_type: Any, **options: Any) -> Any:
    return (
        new(state_type)
        .add_node("A", lambda state: state)
        .add_interrupt_boundary("A")
        .add_node("B", lambda state: state)
        .add_edge("A", "B")
        .compile(checkpointing=policy, clock=world.clock, **options)
    )


class TestOverrides:
    @BOTH
    @pytest.mark.parametrize(
        ("signal", "detail"),
        [
            (
                HumanSignal.approve("j").with_field_override("price", "4150.25"),
                "state.price: must be a number, not str",
            ),
            (HumanSignal.approve("j").with_override("price", True), "state.price: must be a number, not bool"),
            (
                HumanSignal.approve("j").with_override("prize", 1.0),
                "state.prize: is no field of Line (did you mean 'price'?)",
            ),
            (
                HumanSignal.approve("j").with_override("price", Decimal(1)),
                "overrides.price: decimal.Decimal has no JSON",
            ),
            (
                HumanSignal.approve("j").with_override("price", float("nan")),
                "overrides.price: nan is not a JSON number",
            ),
            (
                HumanSignal.approve("j").with_override("sku", "a").with_field_override("sku", "b"),
                "sku: stands in overrides and in field_overrides",
            ),
        ],
    )
    def test_one_that_does_not_fit_is_refused_and_the_thread_still_waits(
        self, world: Any, policy: CheckpointPolicy, signal: HumanSignal, detail: str
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = waiting(world, policy, Line)
                await compiled.run("t", Line(1.0), store)
                before = await world.log(store, "t")
                result = await compiled.resume("t", signal, store)

                assert FailureCode.INVALID_SIGNAL is result.code
                assert result.detail.startswith(detail)
                assert before == await world.log(store, "t")
                assert None is await store.live_lease("t")
                again = await compiled.resume("t", HumanSignal.approve("j").with_override("price", 2), store)
                assert Completed("t", Line(2.0)) == again

        asyncio.run(main())

    @BOTH
    def test_both_kinds_are_applied_and_recorded(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = waiting(world, policy, Line)
                await compiled.run("t", Line(1.0), store)
                signal = HumanSignal.approve("j").with_override("price", 2.5).with_field_override("sku", "new")
                result = await compiled.resume("t", signal, store)

                assert Completed("t", Line(2.5, "new")) == result
                decision = (await world.log(store, "t"))[-1].decision
                assert {"price": 2.5, "sku": "new"} == decision.overrides

        asyncio.run(main())

    @BOTH
    def test_a_dict_state_takes_any_key(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = waiting(world, policy, dict)
                await compiled.run("t", {"n": 1}, store)
                reason = {"why": ["late"]}
                result = await compiled.resume("t", HumanSignal.reject("j").with_override("reason", reason), store)

                assert Completed("t", {"n": 1, "reason": reason}) == result

        asyncio.run(main())


class TestRehydration:
    @BOTH
    def test_a_state_that_no_longer_fits_is_refused_with_the_literal_message(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        @attrs.frozen
        class NewLine:
            price: str

        async def main() -> None:
            async with world.open() as store:
                await waiting(world, policy, Line).run("it's", Line(1.0), store)
                before = await world.log(store, "it's")
                result = await waiting(world, policy, NewLine).resume("it's", HumanSignal.approve("j"), store)

                assert FailureCode.REHYDRATION_FAILED is result.code
                assert "failed to rehydrate state for thread 'it's'" == result.message
                assert "state.sku: is no field of" in result.detail
                assert before == await world.log(store, "it's")

        asyncio.run(main())

    @BOTH
    def test_upcast_brings_a_state_of_another_version_up(self, world: Any, policy: CheckpointPolicy) -> None:
        @attrs.frozen
        class NewLine:
            cents: int
            sku: str

        seen = []

        def upcast(content: dict[str, Any], version: str) -> dict[str, Any]:
            seen.append(version)
            return {"cents": round(content.pop("price") * 100), **content}

        async def main() -> None:
            async with world.open() as store:
                old = waiting(world, policy, Line, identity=GraphIdentity("g", "1"))
                new = waiting(world, policy, NewLine, identity=GraphIdentity("g", "2"), upcast=upcast)
                await old.run("t", Line(1.25), store)
                result = await new.resume("t", HumanSignal.approve("j").with_override("sku", "y"), store)

                assert Completed("t", NewLine(125, "y")) == result
                await new.run("u", NewLine(1, "x"), store)
                assert Completed("u", NewLine(1, "x")) == await new.resume("u", HumanSignal.approve("j"), store)
                assert ["1"] == seen

        asyncio.run(main())

    @BOTH
    @pytest.mark.parametrize("upcast", [lambda content, version: 1 / 0, lambda content, version: None])
    def test_an_upcast_that_fails_is_a_refusal(self, world: Any, policy: CheckpointPolicy, upcast: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                await waiting(world, policy, Line, identity=GraphIdentity("g", "1")).run("t", Line(1.0), store)
                new = waiting(world, policy, Line, identity=GraphIdentity("g", "2"), upcast=upcast)
                result = await new.resume("t", HumanSignal.approve("j"), store)

                assert FailureCode.REHYDRATION_FAILED is result.code
                assert "upcast from version '1'" in result.detail
                assert 1 == len([c for c in await world.log(store, "t") if c.state == "interrupted"])

        asyncio.run(main())


class TestUnsavable:
    @BOTH
    def test_a_state_without_a_json_form_is_refused_before_anything_runs(
        self, world: Any, policy: CheckpointPolicy
    ) -> None:
        ran: list[Any] = []

        async def main() -> None:
            async with world.open() as store:
                compiled = new(dict).add_node("A", ran.append).compile(checkpointing=policy, clock=world.clock)
                with pytest.raises(InvalidInputError, match=r"^state\.a\[0\]: nan is not a JSON number"):
                    await compiled.run("t", {"a": [float("nan")]}, store)
                loop: dict[str, Any] = {}
                loop["self"] = loop
                with pytest.raises(InvalidInputError, match=r"^state: contains itself"):
                    await compiled.run("t", loop, store)

                with pytest.raises(InvalidInputError, match=r"^state: cannot be copied: TypeError"):
                    await compiled.run("t", {"lock": threading.Lock()}, store)

                assert [] == ran
                assert None is await store.load("t")
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_a_node_that_returns_one_fails_and_its_last_good_state_is_kept(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = (
                    new(dict)
                    .add_node("A", lambda state: {"n": 1})
                    .add_node("B", lambda state: {"n": {1, 2}})
                    .add_node("C", lambda state: state)
                    .add_edge("A", "B")
                    .add_edge("B", "C")
                    .compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                result = await compiled.run("t", {"n": 0}, store)

                assert (FailureCode.INVALID_STATE, "B") == (result.code, result.node)
                assert "state.n: builtins.set has no JSON form" in result.detail
                last = (await world.log(store, "t"))[-1]
                assert ("failed", "B", {"n": 1}) == (last.state, last.next_node, last.frozen_state)
                assert None is await store.live_lease("t")

        asyncio.run(main())

    def test_under_boundaries_it_is_found_at_the_stop(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                compiled = (
                    new(dict)
                    .add_node("A", lambda state: {"n": {1, 2}})
                    .add_node("B", lambda state: state)
                    .add_interrupt_boundary("B")
                    .add_edge("A", "B")
                    .compile(clock=world.clock)
                )
                result = await compiled.run("t", {"n": 0}, store)

                assert isinstance(result, Failed)
                assert (FailureCode.INVALID_STATE, "B") == (result.code, result.node)
                assert None is await store.load("t")
                assert isinstance(await compiled.run("t", {"n": 0}), Interrupted)

        asyncio.run(main())
