"""Which types a state may be made of.

Each has one JSON form, and reads back as exactly itself:

- ``None``, ``bool``, ``int``, ``float``, ``str``: themselves.  An int fits a float field, and nothing else converts.
- `decimal.Decimal` and `uuid.UUID`: their text.  `datetime` (aware) and `date`: ISO 8601 text; the offset is kept.
- An `enum.Enum` whose values are str or int, and a ``Literal`` of str, int, bool, None: the value.  Of a `Flag` only
  its named members.
- ``list[X]``, ``tuple[X, ...]``, ``tuple[X, Y]``: an array.  ``dict[str, X]`` and ``Mapping[str, X]``: an object.
- attrs classes, dataclasses and `TypedDict`: an object of their fields, by name.  The constructor takes all of them
  and nothing else.  A converter of an attrs field must return what it once returned as it is.
- ``X | None``, and unions of None, bool, int, float and str.
- ``Any`` and ``object``: JSON values as they are.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar, Final, Literal, NamedTuple, NewType, Union, cast
from uuid import UUID

import attrs

__all__ = ["Field", "Kind", "Shape", "UnsupportedTypeError", "read_shape", "unsupported_types"]

_SCALARS: Final = (type(None), bool, int, float, str)
_LEAVES: Final = (*_SCALARS, Decimal, UUID, datetime, date)


class Kind(Enum):
    """How a type is handled."""

    ANY = "any"
    LEAF = "leaf"
    ENUM = "enum"
    LITERAL = "literal"
    LIST = "list"
    DICT = "dict"
    TUPLE = "tuple"
    FIXED_TUPLE = "fixed tuple"
    UNION = "union"
    CLASS = "class"
    TYPED_DICT = "typed dict"


class Field(NamedTuple):
    """A field of a class.

    Attributes:
        name: Its name.
        type: Its type.
        alias: The constructor's name for it.
        required: Whether JSON must have it.
        convert: What the constructor makes of a value of it; None for nothing.
    """

    name: str
    type: Any
    alias: str
    required: bool
    convert: Callable[[Any], Any] | None = None


class Shape(NamedTuple):
    """A type, taken apart.

    Attributes:
        kind: How it is handled.
        type: The type itself, without wrappers such as ``Annotated``.
        args: The types in it: of items, of values, or the members of a union or literal.
        fields: The fields of a class.
    """

    kind: Kind
    type: Any
    args: tuple[Any, ...] = ()
    fields: tuple[Field, ...] = ()


class UnsupportedTypeError(Exception):
    """A type has no JSON form here."""


def read_shape(tp: Any) -> Shape:
    """Take a type apart.

    Raises:
        UnsupportedTypeError: It has no JSON form here.
    """
    tp = _unwrap(tp)
    if tp is Any or tp is object:
        return Shape(Kind.ANY, tp)
    if tp is None:
        tp = type(None)
    if tp in _LEAVES:
        return Shape(Kind.LEAF, tp)
    origin, args = typing.get_origin(tp), tuple(map(_unwrap, typing.get_args(tp)))
    if origin is Literal:
        if all(type(arg) in (str, int, bool, type(None)) for arg in args):
            return Shape(Kind.LITERAL, tp, args)
        raise UnsupportedTypeError("a Literal may hold str, int, bool and None")
    if origin is Union or origin is types.UnionType:
        return _union(tp, args)
    if isinstance(tp, type) and origin is None:
        return _class(tp)
    if origin is list:
        return Shape(Kind.LIST, tp, args)
    if origin is dict or origin is Mapping:
        return _dict(tp, args)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return Shape(Kind.TUPLE, tp, args[:1])
        return Shape(Kind.FIXED_TUPLE, tp, args)
    raise UnsupportedTypeError(f"{_name(tp)} has no JSON form here")


def _unwrap(tp: Any) -> Any:
    while True:
        if isinstance(tp, NewType):
            tp = tp.__supertype__
        elif isinstance(tp, getattr(typing, "TypeAliasType", ())):
            tp = cast("Any", tp).__value__
        elif typing.get_origin(tp) in (typing.Annotated, typing.Final, typing.Required, typing.NotRequired):
            tp = typing.get_args(tp)[0]
        else:
            return tp


def _union(tp: Any, args: tuple[Any, ...]) -> Shape:
    members = tuple(_unwrap(arg) for arg in args)
    others = [arg for arg in members if arg not in (None, type(None))]
    if len(others) == 1 or all(arg in _SCALARS for arg in others):
        return Shape(Kind.UNION, tp, members)
    raise UnsupportedTypeError(f"of the union {_name(tp)} only X | None, and unions of scalars, have a JSON form here")


def _dict(tp: Any, args: tuple[Any, ...]) -> Shape:
    if args and _unwrap(args[0]) is not str:
        raise UnsupportedTypeError(f"the keys of a JSON object are str, not {_name(args[0])}")
    return Shape(Kind.DICT, tp, args[1:] or (Any,))


def _class(tp: Any) -> Shape:
    if tp is list:
        return Shape(Kind.LIST, tp, (Any,))
    if tp is tuple:
        return Shape(Kind.TUPLE, tp, (Any,))
    if tp is dict or tp is Mapping:
        return _dict(tp, ())
    if issubclass(tp, Enum):
        if all(type(member.value) in (str, int) for member in tp.__members__.values()):
            return Shape(Kind.ENUM, tp)
        raise UnsupportedTypeError(f"the values of {_name(tp)} must be str or int")
    if typing.is_typeddict(tp):
        fields = tuple(Field(key, _unwrap(hint), key, _is_required(tp, key, hint)) for key, hint in _hints(tp).items())
        return Shape(Kind.TYPED_DICT, tp, fields=fields)
    if getattr(tp, "__parameters__", ()):
        raise UnsupportedTypeError(f"{_name(tp)} is generic")
    if attrs.has(tp):
        return Shape(Kind.CLASS, tp, fields=_constructed(tp, _attrs_fields(tp)))
    if dataclasses.is_dataclass(tp):
        return Shape(Kind.CLASS, tp, fields=_constructed(tp, _dataclass_fields(tp)))
    raise UnsupportedTypeError(f"{_name(tp)} has no JSON form here")


def _attrs_fields(tp: Any) -> Iterator[Field]:
    hints = _hints(tp)
    for field in attrs.fields(tp):
        _check_init(tp, field)
        convert = field.converter
        if isinstance(convert, attrs.Converter):
            if convert.takes_self or convert.takes_field:
                raise UnsupportedTypeError(
                    f"the converter of field {field.name!r} of {_name(tp)} takes more than the value"
                )
            convert = convert.converter
        hint = _unwrap(hints.get(field.name, Any))
        yield Field(field.name, hint, field.alias or field.name, field.default is attrs.NOTHING, convert)


def _dataclass_fields(tp: Any) -> Iterator[Field]:
    hints = _hints(tp)
    for name, hint in hints.items():
        if hint is dataclasses.InitVar or isinstance(hint, dataclasses.InitVar):
            raise UnsupportedTypeError(f"{name!r} of {_name(tp)} is an InitVar: it is no part of what is saved")
    for field in dataclasses.fields(tp):
        _check_init(tp, field)
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        yield Field(field.name, _unwrap(hints[field.name]), field.name, required)


def _check_init(tp: Any, field: Any) -> None:
    if not field.init:
        raise UnsupportedTypeError(
            f"the field {field.name!r} of {_name(tp)} has init=False: its value could not be given back by a resume"
        )


def _constructed(tp: Any, fields: Iterator[Field]) -> tuple[Field, ...]:
    """Return the fields of a class whose constructor takes them by name, and needs nothing else."""
    found = tuple(fields)
    needed = [field.alias for field in found if field.required]
    try:
        inspect.signature(tp.__init__).bind(None, **dict.fromkeys(needed))
        inspect.signature(tp.__init__).bind(None, **{field.alias: None for field in found})
    except (TypeError, ValueError) as error:
        raise UnsupportedTypeError(f"the constructor of {_name(tp)} does not take just its fields: {error}") from None
    return found


def _is_required(tp: Any, key: str, hint: Any) -> bool:
    """Tell whether a TypedDict must have a key; the class itself cannot read that from annotations that are text."""
    while typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    origin = typing.get_origin(hint)
    return origin is typing.Required or (origin is not typing.NotRequired and key in tp.__required_keys__)


def _hints(tp: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(tp, include_extras=True)
    except Exception as error:  # noqa: BLE001  # annotations run whatever code they hold
        raise UnsupportedTypeError(f"the annotations of {_name(tp)} cannot be read: {error}") from None
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar}


def _name(tp: Any) -> str:
    if isinstance(tp, type) and not typing.get_args(tp):
        return tp.__qualname__ if tp.__module__ == "builtins" else f"{tp.__module__}.{tp.__qualname__}"
    return str(tp)


def unsupported_types(tp: Any, path: str = "state") -> Iterator[tuple[str, str]]:
    """Yield the path of every type without a JSON form inside a type, and what is wrong with it."""
    seen: set[int] = set()
    stack = [(path, tp)]
    while stack:
        where, item = stack.pop()
        try:
            shape = read_shape(item)
        except UnsupportedTypeError as error:
            yield where, f"{error}; give StateGraph a converter that knows it: strict_converter() with hooks"
            continue
        if shape.kind in (Kind.CLASS, Kind.TYPED_DICT):
            if id(shape.type) in seen:
                continue
            seen.add(id(shape.type))
            stack += [(f"{where}.{field.name}", field.type) for field in reversed(shape.fields)]
        elif shape.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
            stack.append((f"{where}[]", shape.args[0]))
        elif shape.kind is Kind.FIXED_TUPLE:
            stack += [(f"{where}[{index}]", arg) for index, arg in enumerate(shape.args)]
        elif shape.kind is Kind.UNION:
            stack += [(where, arg) for arg in shape.args]
