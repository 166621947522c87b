"""State classes of every kind with fields of every type of STATE.md, and values of them, at random."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Network
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import typing_extensions
from hypothesis import strategies as st

__all__ = ["KINDS", "LEAVES", "Typed", "json_of", "mutations", "states", "typed"]

make_typed_dict: Any = typing_extensions.TypedDict


class Typed(NamedTuple):
    """A type, and a value of it."""

    type: Any
    value: Any


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    DELETE = 4


numbers: Final = st.floats(allow_nan=False, allow_infinity=False)
texts: Final = st.text(max_size=8)
offsets: Final = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=3, minutes=30))])
decimals: Final = st.decimals(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [Decimal("1.0"), Decimal("1.00"), Decimal("-0"), Decimal("1E+3"), Decimal("0E-9")]
)

HASHABLE: Final[list[tuple[Any, Any]]] = [
    (bool, st.booleans()),
    (int, st.integers() | st.just(2**70)),
    (str, texts),
    (bytes, st.binary(max_size=5)),
    (Decimal, decimals),
    (UUID, st.uuids()),
    (datetime, st.datetimes(timezones=offsets)),
    (date, st.dates()),
    (time, st.times() | st.times(timezones=offsets)),
    (timedelta, st.timedeltas()),
    (Path, st.sampled_from([Path("a"), Path("/a/b c"), Path()])),
    (PurePosixPath, st.sampled_from([PurePosixPath("a"), PurePosixPath("../é")])),
    (IPv4Address, st.ip_addresses(v=4)),
    (IPv6Network, st.sampled_from([IPv6Network("::/8"), IPv6Network("fd00::1/128")])),
    (ZoneInfo, st.sampled_from([ZoneInfo("UTC"), ZoneInfo("Europe/Vienna")])),
    (Colour, st.sampled_from(Colour)),
    (Word, st.sampled_from(Word)),
    (Size, st.sampled_from(Size)),
    (Literal["on", "off", 0], st.sampled_from(["on", "off", 0])),
    (int | str, st.integers() | texts),
    (bool | int | None, st.booleans() | st.integers() | st.none()),
    (Decimal | int, decimals | st.integers()),
]
LEAVES: Final[list[tuple[Any, Any]]] = [
    *HASHABLE,
    (float, numbers),
    (int | float, st.integers() | numbers),
    (None, st.none()),
    (bytearray, st.binary(max_size=5).map(bytearray)),
    (Access, st.sampled_from(list(Access)) | st.sampled_from([Access(0), Access.READ | Access.DELETE])),
    (Counter[str], st.dictionaries(texts, st.integers(), max_size=3).map(Counter)),
    (Any, st.recursive(st.none() | st.booleans() | st.integers() | numbers | texts, st.lists)),
]
KEYS: Final = {str: texts, int: st.integers(), UUID: st.uuids(), date: st.dates(), Word: st.sampled_from(Word)}


def _pairs(table: list[tuple[Any, Any]]) -> st.SearchStrategy[Typed]:
    return st.sampled_from(table).flatmap(lambda pair: pair[1].map(lambda value: Typed(pair[0], value)))


def _repeated(found: Typed) -> list[Typed]:
    """Return the types that are made of another one, each with a value."""
    tp: Any = found.type
    value = found.value
    return [
        Typed(list[tp], [value]),
        Typed(list[tp], []),
        Typed(tuple[tp, ...], (value, value)),
        Typed(tuple[tp, int], (value, 7)),
        Typed(deque[tp], deque([value])),
        Typed(dict[str, tp], {"k": value, "": value}),
        Typed(OrderedDict[str, tp], OrderedDict(b=value, a=value)),
        Typed(tp | None if tp is not None else None, value),
        Typed(defaultdict[str, list[tp]], defaultdict(list, {"k": [value]})),
    ]


def _wrapped(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return inner.flatmap(lambda found: st.sampled_from(_repeated(found))) | st.lists(
        inner, min_size=1, max_size=3
    ).flatmap(lambda fields: st.sampled_from(list(KINDS)).map(lambda kind: KINDS[kind](fields)))


@st.composite
def _sets(draw: st.DrawFn) -> Typed:
    pair: tuple[Any, Any] = draw(st.sampled_from(HASHABLE))
    inner: Any = pair[0]
    # Values that are equal and of two types, such as True and 1, are one in a set.
    items = draw(st.lists(pair[1], max_size=3, unique_by=lambda item: item))
    which: Any = draw(st.sampled_from([set, frozenset]))
    return Typed(which[inner], which(items))


@st.composite
def _keyed(draw: st.DrawFn) -> Typed:
    key: Any = draw(st.sampled_from(list(KEYS)))
    return Typed(dict[key, int], draw(st.dictionaries(KEYS[key], st.integers(), max_size=3)))


typed: Final[st.SearchStrategy[Typed]] = st.recursive(_pairs(LEAVES) | _sets() | _keyed(), _wrapped, max_leaves=4)
"""A type of the page, and a value of it."""


def _names(fields: list[Typed]) -> dict[str, Any]:
    return {f"f{number}": field.type for number, field in enumerate(fields)}


def _values(fields: list[Typed]) -> dict[str, Any]:
    return {f"f{number}": field.value for number, field in enumerate(fields)}


def _attrs(fields: list[Typed]) -> Typed:
    cls: Any = attrs.make_class("A", {name: attrs.field(type=tp) for name, tp in _names(fields).items()}, frozen=True)
    return Typed(cls, cls(**_values(fields)))


def _dataclass(fields: list[Typed]) -> Typed:
    cls: Any = dataclasses.make_dataclass("D", list(_names(fields).items()), slots=True, kw_only=True)
    return Typed(cls, cls(**_values(fields)))


def _typed_dict(fields: list[Typed]) -> Typed:
    return Typed(make_typed_dict("T", _names(fields)), _values(fields))


def _struct(fields: list[Typed]) -> Typed:
    cls: Any = msgspec.defstruct("M", list(_names(fields).items()), rename="upper")
    return Typed(cls, cls(**_values(fields)))


def _model(fields: list[Typed]) -> Typed:
    config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    create: Any = pydantic.create_model
    cls = create("P", __config__=config, **{name: (tp, ...) for name, tp in _names(fields).items()})
    return Typed(cls, cls.model_construct(**_values(fields)))


KINDS: Final[dict[str, Callable[[list[Typed]], Typed]]] = {
    "attrs": _attrs,
    "dataclass": _dataclass,
    "TypedDict": _typed_dict,
    "msgspec": _struct,
    "pydantic": _model,
}


def states(kind: str) -> st.SearchStrategy[Typed]:
    """Return state classes of that kind, each with an instance."""
    return st.lists(typed, min_size=1, max_size=3).map(KINDS[kind])


def json_of(content: Any) -> list[tuple[Any, Any]]:
    """Return every place in JSON: its container, and its key or index there."""
    found: list[tuple[Any, Any]] = []
    rest = [content]
    while rest:
        item = rest.pop()
        steps = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        found += [(item, step) for step in steps]
        rest += [item[step] for step in steps]
    return found


def mutations(value: Any) -> list[Any]:
    """Return what somebody else might have written in place of a JSON value."""
    others: list[Any] = [None, True, 0, 1, 1.5, "", "1", "true", [], {}, [value], {"k": value}, str(value)]
    if isinstance(value, str):
        others += [value + " ", value.upper(), value + "\0"]
    if type(value) is int:
        others += [float(value) if abs(value) < 2**53 else 0.5, str(value), value == 1]
    if isinstance(value, dict):
        others += [{**value, "unknown": 1}, dict(list(value.items())[1:])]
    if isinstance(value, list):
        others += [[*value, None], value[1:], value * 2]
    return others
