"""The classes that a state may be made of: what of each is saved, and what none of them lets pass."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from dataclasses import InitVar
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions

from strata_core.errors import GraphValidationError, InvalidInputError, RehydrationError
from strata_core.graph import StateGraph, strict_converter
from strata_core.graph._state import StateCodec

pytestmark = pytest.mark.once("types: of a state, a store is given the JSON")

new: Any = StateGraph
"""Tests misuse it on purpose."""
T = TypeVar("T")
U = TypeVar("U")


def codec_of(tp: Any, converter: Any = None) -> StateCodec[Any]:
    new(tp, converter=converter).add_node("A", lambda state: state).compile()
    return StateCodec(tp, converter)


def problems(tp: Any, converter: Any = None) -> list[str]:
    with pytest.raises(GraphValidationError) as caught:
        new(tp, converter=converter).add_node("A", lambda state: state).compile()
    return [problem.text for problem in caught.value.problems]


@attrs.frozen
class Inner:
    n: int


class Wire(msgspec.Struct, frozen=True, rename="camel", tag="wire", forbid_unknown_fields=True):
    account_number: str
    amount: Decimal = Decimal(0)
    inner: Inner | None = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, arbitrary_types_allowed=True)

    order_id: int = pydantic.Field(alias="orderId", ge=1)
    inner: Inner = Inner(0)
    wires: tuple[Wire, ...] = ()


@dataclasses.dataclass
class Mixed:
    model: Model
    wire: Wire | None = None


class TestStructs:
    def test_they_are_written_under_their_own_names_with_their_tag(self) -> None:
        codec = codec_of(Wire)
        state = Wire("AT61", Decimal("1.50"), Inner(2))

        assert {"type": "wire", "accountNumber": "AT61", "amount": "1.50", "inner": {"n": 2}} == codec.dump(state)
        assert state == codec.load(codec.dump(state))

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ({"accountNumber": "A"}, "state.type: is missing; it is 'wire'"),
            ({"type": "card", "accountNumber": "A"}, "state.type: must be 'wire'"),
            ({"type": "wire"}, "state.accountNumber: is missing"),
            ({"type": "wire", "accountNumber": 1}, "state.accountNumber: must be a str, not int"),
            (
                {"type": "wire", "accountNumber": "A", "amount": 1},
                "state.amount: must be the text of a Decimal, not int",
            ),
            (
                {"type": "wire", "account_number": "A"},
                "state.account_number: is no field of Wire (did you mean 'accountNumber'?)",
            ),
        ],
    )
    def test_nothing_is_converted_when_one_is_read(self, content: dict[str, Any], error: str) -> None:
        with pytest.raises(RehydrationError) as caught:
            codec_of(Wire).load(content)

        assert error == str(caught.value)

    def test_constraints_hold_when_it_is_read_and_when_it_is_saved(self) -> None:
        class Paid(msgspec.Struct):
            cents: Annotated[int, msgspec.Meta(ge=0)]
            names: list[Annotated[str, msgspec.Meta(max_length=3)]] = []

        codec = codec_of(Paid)

        assert Paid(1, ["abc"]) == codec.load(codec.dump(Paid(1, ["abc"])))
        for state in (Paid(-1), Paid(1, ["abcd"])):
            with pytest.raises(InvalidInputError, match=r"^state\.(cents|names): Expected"):
                codec.dump(state)
        with pytest.raises(RehydrationError, match=r"^state\.cents: Expected `int` >= 0"):
            codec.load({"cents": -1})

    def test_one_that_is_no_object_does_not_compile(self) -> None:
        class Pair(msgspec.Struct, array_like=True):
            a: int

        assert "Pair is array_like" in problems(Pair)[0]

    def test_one_that_counts_how_often_it_is_made_is_refused_when_it_is_saved(self) -> None:
        class Counting(msgspec.Struct):
            made: int = 0

            def __post_init__(self) -> None:
                self.made += 1

        with pytest.raises(InvalidInputError, match=r"^state\.made: is another one when .*Counting is made again"):
            codec_of(Counting).dump(Counting())


class TestModels:
    def test_they_are_written_under_their_aliases_and_hold_other_classes(self) -> None:
        codec = codec_of(Mixed)
        state = Mixed(Model(orderId=7, inner=Inner(1), wires=(Wire("A"),)), Wire("B"))
        wires = [{"type": "wire", "accountNumber": "A", "amount": "0", "inner": None}]

        assert {"orderId": 7, "inner": {"n": 1}, "wires": wires} == codec.dump(state)["model"]
        assert state == codec.load(codec.dump(state))

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ({}, "state.orderId: is missing"),
            ({"orderId": "7"}, "state.orderId: must be an int, not str"),
            ({"orderId": True}, "state.orderId: must be an int, not bool"),
            ({"orderId": 7, "inner": {"n": "1"}}, "state.inner.n: must be an int, not str"),
            ({"orderId": 7, "more": 1}, "state.more: is no field of Model"),
            ({"orderId": 0}, "state.orderId: Model refuses it: Input should be greater than or equal to 1"),
        ],
    )
    def test_nothing_is_converted_when_one_is_read(self, content: dict[str, Any], error: str) -> None:
        with pytest.raises(RehydrationError) as caught:
            codec_of(Model).load(content)

        assert error == str(caught.value)

    def test_an_open_one_keeps_what_else_it_holds_as_json(self) -> None:
        class Open(pydantic.BaseModel):
            model_config = pydantic.ConfigDict(extra="allow")
            a: int

        codec = codec_of(Open)
        state = Open(a=1, more={"b": [2]})  # type: ignore[call-arg]

        assert {"a": 1, "more": {"b": [2]}} == codec.dump(state)
        assert state == codec.load(codec.dump(state))

    def test_its_validators_have_their_say_and_no_value_stands_in_their_errors(self) -> None:
        class Careful(pydantic.BaseModel):
            name: str
            total: int = 0

            @pydantic.field_validator("name")
            @classmethod
            def lower(cls, value: str) -> str:
                return value.lower()

            @pydantic.model_validator(mode="after")
            def check(self) -> Careful:
                if self.total == 13:
                    raise ValueError("an unlucky total")
                return self

        codec = codec_of(Careful)

        assert Careful(name="ann") == codec.load(codec.dump(Careful(name="ANN")))
        drifted = Careful(name="ann")
        drifted.name = "ANN"
        with pytest.raises(InvalidInputError, match=r"^state\.name: is another one when .*Careful is made again"):
            codec.dump(drifted)
        with pytest.raises(RehydrationError) as caught:
            codec.load({"name": "secret", "total": 13})
        assert "state: TestModels.test" in str(caught.value)
        assert str(caught.value).endswith("refuses it: Value error, an unlucky total")

    @pytest.mark.parametrize(
        ("alias", "options"),
        [
            (pydantic.AliasChoices("oldName", "older"), {}),
            ("newName", {"validate_by_name": True, "validate_by_alias": False}),
            (pydantic.AliasPath("deep", 0), {"populate_by_name": True}),
        ],
    )
    def test_an_alias_of_input_alone_leaves_the_name_as_it_is(self, alias: Any, options: Any) -> None:
        cls: Any = pydantic.create_model(
            "Renamed", __config__=options, name=(str, pydantic.Field(validation_alias=alias))
        )
        codec = codec_of(cls)
        state = cls.model_construct(name="x")

        assert {"name": "x"} == codec.dump(state)
        assert state == codec.load({"name": "x"})

    def test_what_would_not_be_saved_of_one_does_not_compile(self) -> None:
        class Private(pydantic.BaseModel):
            a: int
            _seen: int = 0

        class Excluding(pydantic.BaseModel):
            a: int = pydantic.Field(exclude=True)

        class Root(pydantic.RootModel[list[int]]):
            pass

        class Deep(pydantic.BaseModel):
            a: int = pydantic.Field(validation_alias=pydantic.AliasPath("b", 0))

        assert "the private attribute '_seen'" in problems(Private)[0]
        assert "the field 'a' of" in problems(Excluding)[0]
        assert "is a RootModel" in problems(Root)[0]
        assert "is taken from inside another value" in problems(Deep)[0]

    def test_one_that_takes_texts_for_numbers_takes_none_from_a_store(self) -> None:
        class Lax(pydantic.BaseModel):
            n: int
            f: float = 0.0
            b: bool = False
            s: str = ""

        codec = codec_of(Lax)
        for content in ({"n": "1"}, {"n": 1.0}, {"n": 1, "b": 1}, {"n": 1, "b": "yes"}, {"n": 1, "s": 5}, {"n": None}):
            with pytest.raises(RehydrationError, match=r"^state\.[nfbs]: must be "):
                codec.load(content)

    def test_dataclasses_of_pydantic_are_dataclasses_with_validators(self) -> None:
        @pydantic.dataclasses.dataclass
        class Checked:
            n: Annotated[int, pydantic.Field(ge=0)]

        codec = codec_of(Checked)

        assert Checked(1) == codec.load(codec.dump(Checked(1)))
        with pytest.raises(RehydrationError, match=r"Checked refuses it"):
            codec.load({"n": -1})


@dataclasses.dataclass(kw_only=True)
class Base:
    a: int = 1


@dataclasses.dataclass(slots=True, frozen=True)
class Sorted:
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(sorted(self.names)))


@dataclasses.dataclass
class Appending:
    names: list[str]

    def __post_init__(self) -> None:
        self.names.append("x")


class TestDataclasses:
    def test_what_is_inherited_is_saved_and_a_missing_field_is_made_by_its_factory(self) -> None:
        @dataclasses.dataclass(kw_only=True)
        class Child(Base):
            b: list[int] = dataclasses.field(default_factory=list)

        codec = codec_of(Child)

        assert {"a": 2, "b": [3]} == codec.dump(Child(a=2, b=[3]))
        assert Child(a=5) == codec.load({"a": 5})

    def test_one_that_settles_its_fields_is_saved_and_one_that_changes_them_each_time_is_refused(self) -> None:
        assert Sorted(("b", "a")) == codec_of(Sorted).load(codec_of(Sorted).dump(Sorted(("b", "a"))))
        state = Appending(["a"])
        with pytest.raises(InvalidInputError, match=r"^state\.names: is another one when Appending is made again"):
            codec_of(Appending).dump(state)

        assert ["a", "x"] == state.names

    def test_what_could_not_be_given_back_does_not_compile(self) -> None:
        @dataclasses.dataclass
        class Given:
            a: InitVar[int]

        @dataclasses.dataclass
        class Computed:
            a: int
            b: int = dataclasses.field(init=False, default=0)

        @dataclasses.dataclass
        class Listed(list):  # type: ignore[type-arg]
            a: int

        assert "is an InitVar" in problems(Given)[0]
        assert "has init=False" in problems(Computed)[0]
        assert "built on a class with a content of its own" in problems(Listed)[0]


@attrs.define(eq=False)
class Plain:
    n: int = attrs.field(validator=attrs.validators.instance_of(int))


@attrs.frozen
class Around:
    plain: Plain
    m: int = attrs.field(default=0, validator=attrs.validators.instance_of(int))


class TestAttrs:
    def test_a_value_that_its_validator_would_refuse_at_a_resume_is_refused_when_it_is_saved(self) -> None:
        @attrs.frozen
        class Short:
            names: list[str] = attrs.field(validator=attrs.validators.max_len(2))

        state = Short(["a"])
        codec = codec_of(Short)

        assert state == codec.load(codec.dump(state))
        state.names.extend("bc")
        with pytest.raises(InvalidInputError, match=r"^state: .*Short refuses it: ValueError"):
            codec.dump(state)

    def test_a_class_that_does_not_compare_is_no_obstacle(self) -> None:
        codec = codec_of(Around)

        assert 3 == codec.load(codec.dump(Around(Plain(3)))).plain.n


@attrs.frozen
class Box(Generic[T]):
    item: T


@attrs.frozen(slots=False)
class Other(Generic[T]):
    other: T


@attrs.frozen(slots=False)
class Both(Box[int], Other[str]):
    pass


@dataclasses.dataclass
class Pair(Generic[T, U]):
    one: T
    two: list[U]
    nested: Pair[T, U] | None = None


class Titled(TypedDict, Generic[T]):
    title: T


class Article(Titled[str]):
    tags: typing_extensions.NotRequired[list[int]]


class Packet(msgspec.Struct, Generic[T]):
    load: T


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Point(NamedTuple):
    x: int
    y: int = 0


class Row(NamedTuple, Generic[T]):
    cell: T


class TestGenerics:
    @pytest.mark.parametrize(
        ("declared", "state", "content"),
        [
            (Box[int], Box(1), {"item": 1}),
            (Box[Box[str]], Box(Box("a")), {"item": {"item": "a"}}),
            (Box[Page[int]], Box(Page[int](items=[1])), {"item": {"items": [1]}}),
            (Box[Point], Box(Point(1)), {"item": {"x": 1, "y": 0}}),
            (Box[Row[int]], Box(Row(1)), {"item": {"cell": 1}}),
            (Both, Both("o", 1), {"other": "o", "item": 1}),  # type: ignore[arg-type]
            (
                Pair[int, str],
                Pair(1, ["a"], Pair(2, [])),
                {"one": 1, "two": ["a"], "nested": {"one": 2, "two": [], "nested": None}},
            ),
            (Titled[int], {"title": 1}, {"title": 1}),
            (Article, {"title": "t", "tags": [1]}, {"title": "t", "tags": [1]}),
            (Packet[Inner], Packet(Inner(1)), {"load": {"n": 1}}),
            (Page[Decimal], Page[Decimal](items=[Decimal(1)]), {"items": ["1"]}),
        ],
        ids=str,
    )
    def test_they_are_saved_as_their_arguments_say(self, declared: Any, state: Any, content: Any) -> None:
        codec = codec_of(declared)

        assert content == codec.dump(state)
        assert state == codec.load(content)

    @pytest.mark.parametrize(
        ("declared", "content", "path"),
        [
            (Box[int], {"item": "1"}, "state.item"),
            (Both, {"other": 1, "item": 1}, "state.other"),
            (Pair[int, str], {"one": 1, "two": [], "nested": {"one": "x", "two": []}}, "state.nested.one"),
            (Titled[int], {"title": "t"}, "state.title"),
            (Article, {"title": 1}, "state.title"),
            (Packet[Inner], {"load": {"n": "1"}}, "state.load.n"),
            (Page[Decimal], {"items": ["1", 2]}, "state.items[1]"),
            (Box[Point], {"item": {"y": 1}}, "state.item.x"),
        ],
        ids=str,
    )
    def test_what_does_not_fit_the_arguments_is_refused(self, declared: Any, content: Any, path: str) -> None:
        with pytest.raises(RehydrationError) as caught:
            codec_of(declared).load(content)

        assert path == caught.value.path

    @pytest.mark.parametrize("declared", [Box, Pair, Packet, Page])
    def test_one_without_its_arguments_does_not_compile(self, declared: Any) -> None:
        assert "is generic; write it with its arguments" in problems(declared)[0]

    def test_one_that_holds_itself_with_ever_other_arguments_compiles_and_is_read(self) -> None:
        codec = codec_of(Growing[int])
        state = Growing(1, Growing([2], None))

        assert state == codec.load(codec.dump(state))


@attrs.frozen
class Growing(Generic[T]):
    item: T
    more: Growing[list[T]] | None = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog", "puppy"] = "dog"
    lives: int = 1


class Ant(msgspec.Struct, tag=True, tag_field="kind"):
    lives: int = 1


class Bee(TypedDict):
    kind: Literal["bee"]
    lives: int


@attrs.frozen
class Named:
    name: str


@attrs.frozen
class Sized:
    size: int
    unit: str = "m"


Animal = Cat | Dog | Ant | Bee


def holder(tp: Any) -> Any:
    return attrs.make_class("Holder", {"it": attrs.field(type=tp)})


class TestUnions:
    @pytest.mark.parametrize(
        ("declared", "value", "content"),
        [
            (Animal, Cat(), {"kind": "cat", "lives": 9}),
            (Animal, Dog(kind="puppy"), {"kind": "puppy", "lives": 1}),
            (Animal, Ant(), {"kind": "Ant", "lives": 1}),
            (Animal | None, {"kind": "bee", "lives": 3}, {"kind": "bee", "lives": 3}),
            (Named | Sized, Sized(1), {"size": 1, "unit": "m"}),
            (list[Named | int] | str, [1, Named("a")], [1, {"name": "a"}]),
            (Decimal | int | None, Decimal("1.0"), "1.0"),
            (Literal["auto"] | int, "auto", "auto"),
            (Literal["auto"] | str, "other", "other"),  # noqa: PYI051  # users write it
            (int | float, 1.0, 1.0),
            (float | str, 2, 2),
        ],
        ids=str,
    )
    def test_a_value_reads_back_as_the_member_that_it_was(self, declared: Any, value: Any, content: Any) -> None:
        cls = holder(declared)
        codec = codec_of(cls)

        assert {"it": content} == codec.dump(cls(value))
        again = codec.load({"it": content}).it
        assert (type(value), value) == (type(again), again)

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ({"lives": 1}, "state.it: may be of Cat or Dog: kind must tell which"),
            ({"kind": "cow"}, "state.it.kind: must be 'cat' or 'dog' or 'puppy' or 'Ant' or 'bee'"),
            ({"kind": "cat", "lives": "9"}, "state.it.lives: must be an int, not str"),
            ({"kind": "cat", "tail": 1}, "state.it.tail: is no field of Cat"),
            ([], "state.it: must be Ant or Bee or Cat or Dog, not list"),
        ],
        ids=str,
    )
    def test_what_tells_no_member_is_refused(self, content: Any, error: str) -> None:
        with pytest.raises(RehydrationError) as caught:
            codec_of(holder(Animal)).load({"it": content})

        assert error == str(caught.value)

    def test_an_instance_of_a_subclass_is_of_no_member(self) -> None:
        class Lion(Cat):
            pass

        cls = holder(Animal)
        with pytest.raises(InvalidInputError, match=r"^state\.it: must be .* not .*Lion"):
            codec_of(cls).dump(cls(Lion()))

    @pytest.mark.parametrize(
        "declared",
        [
            Decimal | str,
            Inner | dict[str, int],
            Box[int] | Box[str],
            list[int] | tuple[int, ...],
            Cat | Base,
            float | bytes | str,
            Any | int,
        ],
        ids=str,
    )
    def test_members_that_json_cannot_tell_apart_do_not_compile(self, declared: Any) -> None:
        (problem,) = problems(holder(declared))

        assert problem.startswith("state.it: in the union")
        assert "cannot be told apart" in problem


class Own:
    """A class that no converter knows, and that compares by its content."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.text == other.text

    __hash__ = None  # type: ignore[assignment]


class Blind:
    """One that does not compare."""

    def __init__(self, text: str) -> None:
        self.text = text


def with_hooks(tp: Any, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> Any:
    converter = strict_converter()
    converter.register_unstructure_hook(tp, write)
    converter.register_structure_hook(tp, lambda content, _: read(content))
    return converter


class TestHooks:
    @pytest.mark.parametrize("tp", [Own, Blind])
    @pytest.mark.parametrize("declared", ["tp", "list[tp]", "dict[str, tp | None]", "Box[tp]"])
    def test_a_type_with_hooks_may_stand_anywhere(self, tp: Any, declared: str) -> None:
        cls = holder(eval(declared, {"tp": tp, "Box": Box}))
        value: Any = tp("a")
        if declared != "tp":
            value = {"list[tp]": [value], "Box[tp]": Box(value)}.get(declared, {"k": value, "none": None})
        codec = codec_of(cls, with_hooks(tp, lambda item: item.text, tp))
        content = codec.dump(cls(value))

        assert content == codec.dump(codec.load(content))

    @pytest.mark.parametrize(
        ("write", "read", "problem"),
        [
            (lambda item: item.text[:1], Own, "its hooks do not give it back as it was"),
            (lambda item: item.text, lambda text: {}[text], "its hook refuses what it wrote itself: KeyError"),
            (lambda item: {item.text}, Own, "its hook gives no JSON: builtins.set has no JSON form"),
            (lambda item: item.text, lambda text: text, "its hooks do not give it back as it was"),
        ],
    )
    def test_hooks_that_do_not_give_a_value_back_refuse_it_when_it_is_saved(
        self, write: Any, read: Any, problem: str
    ) -> None:
        cls = holder(Own)
        with pytest.raises(InvalidInputError) as caught:
            codec_of(cls, with_hooks(Own, write, read)).dump(cls(Own("ab")))

        assert str(caught.value).startswith(f"state.it: {problem}")

    def test_what_has_no_hooks_is_still_a_problem(self) -> None:
        cls = attrs.make_class(
            "Holder", {"known": attrs.field(type=Own), "unknown": attrs.field(type=Blind), "n": attrs.field(type=int)}
        )
        only = with_hooks(Own, lambda item: item.text, Own)
        half = strict_converter()
        half.register_unstructure_hook(Blind, lambda item: item.text)

        assert ["state.unknown"] == [text.partition(":")[0] for text in problems(cls, only)]
        assert ["state.known", "state.unknown"] == [text.partition(":")[0] for text in problems(cls, half)]

    def test_a_class_with_hooks_is_left_to_them_whole(self) -> None:
        @dataclasses.dataclass
        class Computed:
            a: int
            double: int = dataclasses.field(init=False)

            def __post_init__(self) -> None:
                self.double = 2 * self.a

        codec = codec_of(Computed, with_hooks(Computed, lambda item: {"a": item.a}, lambda found: Computed(**found)))

        assert {"a": 2} == codec.dump(Computed(2))
        assert Computed(2) == codec.load({"a": 2})

    def test_a_foreign_converter_is_held_to_giving_the_state_back(self) -> None:
        import cattrs

        lossy = cattrs.Converter()
        lossy.register_unstructure_hook(int, lambda value: value % 10)
        codec: StateCodec[Any] = StateCodec(Inner, lossy)

        assert {"n": 3} == codec.dump(Inner(3))
        with pytest.raises(InvalidInputError, match=r"^state: its hooks do not give it back"):
            codec.dump(Inner(13))

    def test_a_copy_of_the_strict_converter_is_strict(self) -> None:
        codec = codec_of(Inner, strict_converter().copy())

        assert Inner(1) == codec.load(codec.dump(Inner(1)))
        with pytest.raises(RehydrationError, match=r"^state\.n: must be an int, not str"):
            codec.load({"n": "1"})


def test_neither_msgspec_nor_pydantic_is_imported_for_a_graph() -> None:
    program = """
import sys, attrs
from typing import TypedDict
from strata_core import StateGraph, open_store

@attrs.frozen
class S:
    a: int = 1

class D(TypedDict):
    a: int

for tp, state in ((S, S()), (D, {"a": 1}), (dict, {"a": 1})):
    graph = StateGraph(tp).add_node("A", lambda s: s).add_interrupt_boundary("A").compile()
    graph.run_sync("t", state, open_store("memory://"))
print(sorted({"msgspec", "pydantic"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)

    assert ("[]\n", 0) == (done.stdout, done.returncode), done.stderr
