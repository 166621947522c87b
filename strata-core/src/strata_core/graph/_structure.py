"""From JSON values to states, strictly."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from strata_core._guess import did_you_mean
from strata_core.graph._leaves import Dump, Load, exactly, leaf_of, literal
from strata_core.graph._misfit import MisfitError, mismatch
from strata_core.graph._object_keys import Codec, key_codec
from strata_core.graph._own_hooks import load_hook, own
from strata_core.graph._rebuilding import made
from strata_core.graph._shapes import Field, Kind, Shape
from strata_core.graph._types import read_shape
from strata_core.graph._unions import JSON_KINDS, Member, choose_object, find_members

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["default_factory", "load_factory"]


def load_factory(tp: Any, converter: Converter) -> Load:
    """Return the function that turns JSON values into values of a type.

    Raises:
        UnsupportedTypeError: The type has no JSON form here.
    """
    load = _load_of(read_shape(tp), converter)
    return own(lambda value, _: load(value))


def _load_of(shape: Shape, converter: Converter) -> Dump:
    kind = shape.kind
    if kind is Kind.ANY:
        return lambda value: value
    if kind is Kind.LEAF and (leaf := leaf_of(shape.type)) is not None:
        return leaf.load
    if kind is Kind.ENUM:
        return _load_enum(shape.type)
    if kind is Kind.FLAG:
        return _load_flag(shape.type)
    if kind is Kind.LITERAL:
        return literal(shape.args)
    if kind is Kind.UNION:
        return _load_union(shape, converter)
    if kind is Kind.ARRAY:
        return _load_items(shape.type, _inner(shape.args[0], converter))
    if kind is Kind.OBJECT:
        return _load_values(shape, key_codec(shape.args[0]), _inner(shape.args[1], converter))
    if kind is Kind.FIXED_TUPLE:
        return _load_fixed([_inner(arg, converter) for arg in shape.args])
    return _load_fields(shape, converter)


def _inner(tp: Any, converter: Converter) -> Dump:
    load = load_hook(tp, converter)
    return lambda value: load(value, tp)


def _object(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise mismatch(value, "an object")


def _array(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    raise mismatch(value, "an array")


def _load_enum(kind: Any) -> Dump:
    members = {(type(member.value), member.value): member for member in kind.__members__.values()}

    def load(value: Any) -> Any:
        if type(value) in (str, int) and (type(value), value) in members:
            return members[type(value), value]
        raise MisfitError(f"must be a value of {kind.__qualname__}: {', '.join(repr(m.value) for m in kind)}")

    return load


def _load_flag(kind: Any) -> Dump:
    def load(value: Any) -> Any:
        if type(value) is not int:
            raise mismatch(value, f"the number of a {kind.__qualname__}")
        try:
            found = kind(value)
        except ValueError:
            found = None
        if type(found) is not kind or found.value != value:
            raise MisfitError(f"must be the number of members of {kind.__qualname__}")
        return found

    return load


def _load_union(shape: Shape, converter: Converter) -> Dump:
    others = [arg for arg in shape.args if arg is not type(None)]
    if len(others) == 1:
        inner = _inner(others[0], converter)
        return lambda value: None if value is None else inner(value)
    choices: dict[str, list[tuple[Member, Dump]]] = {}
    members = find_members(shape.type, shape.args)
    exact_int = any(member.shape.type is int for member in members)
    for member in members:
        load = _inner(member.type, converter)
        for kind in member.kinds:
            if not (kind == "int" and member.shape.type is float):
                choices.setdefault(kind, []).append((member, load))
            elif not exact_int:
                choices.setdefault(kind, []).append((member, exactly(int, "a number")))  # it was one, and stays one
    wanted = " or ".join(sorted({_in_words(member) for member in members}))

    def load_union(value: Any) -> Any:
        found = choices.get(JSON_KINDS.get(type(value), ""), ())
        if not found:
            raise mismatch(value, wanted)
        if len(found) == 1:
            return found[0][1](value)
        if type(value) is dict:
            chosen = choose_object([member for member, _ in found], value)
        else:
            chosen = _choose_scalar([member for member, _ in found], value)
        return next(load for member, load in found if member is chosen)(value)

    return load_union


def _choose_scalar(members: list[Member], value: Any) -> Member:
    for member in members:
        if member.values is not None and (type(value), value) in member.values:
            return member
    for member in members:
        if member.values is None:
            return member
    values = [value for member in members for _, value in sorted(member.values or (), key=repr)]
    raise MisfitError(f"must be {' or '.join(map(repr, values))}")


def _in_words(member: Member) -> str:
    if member.shape.type is type(None):
        return "None"
    name = getattr(member.shape.type, "__qualname__", None)
    return name if isinstance(name, str) and member.shape.kind is not Kind.LITERAL else str(member.type)


def _load_items(kind: Callable[[Iterable[Any]], Any], inner: Dump) -> Dump:
    is_set = kind in (set, frozenset)

    def load(value: Any) -> Any:
        items = _each(inner, _array(value))
        found = kind(items) if kind is not list else items
        if is_set and len(found) != len(items):
            raise MisfitError("holds an item twice, and a set does not")
        return found

    return load


def _each(inner: Dump, items: list[Any]) -> list[Any]:
    found: list[Any] = []
    try:
        for item in items:
            found.append(inner(item))  # noqa: PERF401  # its length tells which item does not fit
    except MisfitError as error:
        raise error.under(f"[{len(found)}]") from None
    return found


def _load_values(shape: Shape, keys: Codec | None, inner: Dump) -> Dump:
    kind = shape.type
    factory = default_factory(shape) if kind is defaultdict else None

    def load(value: Any) -> Any:
        found: dict[Any, Any] = {}
        for key, item in _object(value).items():
            try:
                found[key if keys is None else keys[1](key)] = inner(item)
            except MisfitError as error:
                raise error.under(f".{key}") from None
        if kind is dict:
            return found
        return defaultdict(factory, found) if kind is defaultdict else kind(found)

    return load


def default_factory(shape: Shape) -> Callable[[], Any] | None:
    """Return what makes the missing values of a defaultdict, as its type tells; None when it does not."""
    try:
        inner = read_shape(shape.args[1])
    except Exception:  # noqa: BLE001  # a type that only a user's hook knows
        return None
    made_empty = (bool, int, float, str, bytes, list, tuple, set, frozenset, dict, Counter)
    return inner.type if inner.kind in (Kind.LEAF, Kind.ARRAY, Kind.OBJECT) and inner.type in made_empty else None


def _load_fixed(inners: list[Dump]) -> Dump:
    def load(value: Any) -> Any:
        if len(_array(value)) != len(inners):
            raise MisfitError(f"must be an array of {len(inners)}, not of {len(value)}")
        found: list[Any] = []
        try:
            for inner, item in zip(inners, value, strict=True):
                found.append(inner(item))  # its length tells which item does not fit
        except MisfitError as error:
            raise error.under(f"[{len(found)}]") from None
        return tuple(found)

    return load


def _load_fields(shape: Shape, converter: Converter) -> Dump:
    fields: dict[str, Field] = {field.key: field for field in shape.fields}
    inners = {field.key: _inner(field.type, converter) for field in shape.fields}
    required = [field.key for field in shape.fields if field.required]
    cls, make, tag = shape.type, shape.make, shape.tag
    known = fields if tag is None else fields | {tag[0]: None}

    def load(value: Any) -> Any:
        for key in _object(value):
            if key not in known and not shape.is_open:
                raise MisfitError(f"is no field of {cls.__qualname__}{did_you_mean(key, fields)}").under(f".{key}")
        if tag is not None:
            _check_tag(tag, value)
        for key in required:
            if key not in value:
                raise MisfitError("is missing").under(f".{key}")
        found: dict[str, Any] = {}
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                if tag is None or key != tag[0]:
                    found[key] = item
                continue
            try:
                found[field.name] = inners[key](item)
            except MisfitError as error:
                raise error.under(f".{key}") from None
        return found if make is None else made(cls, make, found)

    return load


def _check_tag(tag: tuple[str, str | int], value: dict[str, Any]) -> None:
    key, wanted = tag
    if key not in value:
        raise MisfitError(f"is missing; it is {wanted!r}").under(f".{key}")
    if type(value[key]) is not type(wanted) or value[key] != wanted:
        raise MisfitError(f"must be {wanted!r}").under(f".{key}")
