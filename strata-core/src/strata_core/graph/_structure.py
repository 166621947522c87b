"""From JSON values to states, strictly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from strata_core._guess import did_you_mean
from strata_core.graph._leaves import LEAVES, Load, literal, one_of
from strata_core.graph._misfit import MisfitError, mismatch
from strata_core.graph._types import Field, Kind, Shape, read_shape

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["load_factory"]


def load_factory(tp: Any, converter: Converter) -> Load:
    """Return the function that turns JSON values into values of a type.

    Raises:
        UnsupportedTypeError: The type has no JSON form here.
    """
    shape = read_shape(tp)
    kind = shape.kind
    if kind is Kind.ANY:
        return lambda value, _: value
    if kind is Kind.LEAF:
        load = LEAVES[shape.type][1]
        return lambda value, _: load(value)
    if kind is Kind.ENUM:
        return _load_enum(shape.type)
    if kind is Kind.LITERAL:
        check = literal(shape)
        return lambda value, _: check(value)
    if kind is Kind.UNION:
        return _load_union(shape, converter)
    if kind in (Kind.LIST, Kind.TUPLE):
        return _load_items(shape, converter, list if kind is Kind.LIST else tuple)
    if kind is Kind.DICT:
        inner, arg = converter.get_structure_hook, shape.args[0]
        return lambda value, _: {key: _inside(f".{key}", inner(arg), item, arg) for key, item in _object(value).items()}
    if kind is Kind.FIXED_TUPLE:
        return _load_fixed(shape, converter)
    return _load_fields(shape, converter)


def _inside(step: str, load: Load, value: Any, tp: Any) -> Any:
    try:
        return load(value, tp)
    except MisfitError as error:
        raise error.under(step) from None


def _object(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise mismatch(value, "an object")


def _array(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    raise mismatch(value, "an array")


def _load_enum(kind: Any) -> Load:
    members = {(type(member.value), member.value): member for member in kind.__members__.values()}

    def load(value: Any, _: Any) -> Any:
        if type(value) in (str, int) and (type(value), value) in members:
            return members[type(value), value]
        raise MisfitError(f"must be a value of {kind.__qualname__}: {', '.join(repr(m.value) for m in kind)}")

    return load


def _load_union(shape: Shape, converter: Converter) -> Load:
    others = [arg for arg in shape.args if arg not in (None, type(None))]
    if len(others) == 1:
        arg = others[0]
        return lambda value, _: None if value is None else converter.get_structure_hook(arg)(value, arg)
    optional = len(others) < len(shape.args)
    check = one_of(frozenset(others) | (frozenset({type(None)}) if optional else frozenset()))
    return lambda value, _: check(value)


def _load_items(shape: Shape, converter: Converter, kind: Callable[[list[Any]], Any]) -> Load:
    arg = shape.args[0]

    def load(value: Any, _: Any) -> Any:
        inner = converter.get_structure_hook(arg)
        return kind([_inside(f"[{index}]", inner, item, arg) for index, item in enumerate(_array(value))])

    return load


def _load_fixed(shape: Shape, converter: Converter) -> Load:
    args = shape.args

    def load(value: Any, _: Any) -> Any:
        if len(_array(value)) != len(args):
            raise MisfitError(f"must be an array of {len(args)}, not of {len(value)}")
        return tuple(
            _inside(f"[{index}]", converter.get_structure_hook(arg), item, arg)
            for index, (arg, item) in enumerate(zip(args, value, strict=True))
        )

    return load


def _load_fields(shape: Shape, converter: Converter) -> Load:
    fields: dict[str, Field] = {field.name: field for field in shape.fields}
    make = shape.type
    is_class = shape.kind is Kind.CLASS

    @cache
    def hook(name: str) -> Load:
        return converter.get_structure_hook(fields[name].type)

    def load(value: Any, _: Any) -> Any:
        for key in _object(value):
            if key not in fields:
                raise MisfitError(f"is no field of {make.__qualname__}{did_you_mean(key, fields)}").under(f".{key}")
        for field in fields.values():
            if field.required and field.name not in value:
                raise MisfitError("is missing").under(f".{field.name}")
        found = {key: _inside(f".{key}", hook(key), item, fields[key].type) for key, item in value.items()}
        if not is_class:
            return found
        try:
            return make(**{fields[key].alias: item for key, item in found.items()})
        except Exception as error:
            raise MisfitError(f"{make.__qualname__} refuses it: {type(error).__name__}: {error}") from error

    return load
