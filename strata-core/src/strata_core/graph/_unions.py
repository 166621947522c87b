"""Unions: which member a value is of, told by the value in Python, and by its JSON alone when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

from strata_core.graph._leaves import leaf_of
from strata_core.graph._misfit import MisfitError
from strata_core.graph._shapes import Kind, Shape, UnsupportedTypeError, type_name
from strata_core.graph._types import read_shape

__all__ = ["JSON_KINDS", "Member", "choose_object", "find_members"]

JSON_KINDS: Final = {
    type(None): "null", bool: "bool", int: "int", float: "float", str: "string", list: "array", dict: "object",
}  # fmt: skip
_PLAIN: Final = (type(None), bool, int, float, str)


class Member(NamedTuple):
    """One member of a union.

    Attributes:
        type: The member.
        shape: The same, taken apart.
        kinds: What its JSON may be.
        values: All its JSON values with their types, if there are only so many.
        required: The keys that its JSON object always has.
        allowed: All keys that it may have; None for any.
        marks: What stands at keys that tell it from others: a tag, or fields of a Literal.
    """

    type: Any
    shape: Shape
    kinds: frozenset[str]
    values: frozenset[tuple[type, Any]] | None = None
    required: frozenset[str] = frozenset()
    allowed: frozenset[str] | None = None
    marks: dict[str, frozenset[tuple[type, Any]]] = {}  # noqa: RUF012  # never changed

    def fits(self, content: dict[str, Any]) -> bool:
        """Tell whether an object is one of it, as far as its keys and marks tell."""
        return (
            self.required <= content.keys()
            and (self.allowed is None or content.keys() <= self.allowed)
            and all(_value(content[key]) in values if key in content else True for key, values in self.marks.items())
        )


def find_members(union: Any, types: Sequence[Any]) -> list[Member]:
    """Return the members of a union.

    Raises:
        UnsupportedTypeError: Some JSON value could be of two of them.
    """
    members = [_member(tp) for tp in types]
    for one, other in combinations(members, 2):
        if _can_be_mistaken(one, other):
            names = f"{type_name(one.type)} and {type_name(other.type)}"
            text = f"in the union {type_name(union)} the JSON of {names} cannot be told apart"
            if one.kinds == other.kinds == frozenset({"object"}):
                text += "; give each class a field of its own Literal, such as kind: Literal['a']"
            raise UnsupportedTypeError(text)
    return members


def _member(tp: Any) -> Member:
    shape = read_shape(tp)
    kind = shape.kind
    if kind in (Kind.LITERAL, Kind.ENUM):
        plain = [getattr(arg, "value", arg) if kind is Kind.ENUM else arg for arg in shape.args]
        return Member(tp, shape, frozenset(JSON_KINDS[type(value)] for value in plain), frozenset(map(_value, plain)))
    if kind is Kind.LEAF:
        leaf = leaf_of(shape.type)
        return Member(tp, shape, frozenset() if leaf is None else leaf.kinds)
    if kind is Kind.FLAG:
        return Member(tp, shape, frozenset({"int"}))
    if kind in (Kind.ARRAY, Kind.FIXED_TUPLE):
        return Member(tp, shape, frozenset({"array"}))
    if kind is Kind.OBJECT:
        return Member(tp, shape, frozenset({"object"}))
    if kind in (Kind.CLASS, Kind.TYPED_DICT):
        return _object_member(tp, shape)
    return Member(tp, shape, frozenset(JSON_KINDS.values()))


def _object_member(tp: Any, shape: Shape) -> Member:
    marks = {}
    for field in shape.fields:
        try:
            inner = read_shape(field.type) if field.required or shape.kind is Kind.CLASS else None
        except UnsupportedTypeError:
            continue
        if inner is not None and inner.kind is Kind.LITERAL:
            marks[field.key] = frozenset(map(_value, inner.args))
    required = {field.key for field in shape.fields if field.required}
    allowed = {field.key for field in shape.fields}
    if shape.tag is not None:
        key, value = shape.tag
        marks[key] = frozenset({_value(value)})
        required.add(key)
        allowed.add(key)
    return Member(
        tp,
        shape,
        frozenset({"object"}),
        None,
        frozenset(required),
        None if shape.is_open else frozenset(allowed),
        marks,
    )


def _can_be_mistaken(one: Member, other: Member) -> bool:
    shared = one.kinds & other.kinds
    if not shared:
        return False
    if one.values is not None and other.values is not None:
        return bool(one.values & other.values)
    plain = [
        member.shape.kind is Kind.LITERAL or (member.shape.kind is Kind.LEAF and member.shape.type in _PLAIN)
        for member in (one, other)
    ]
    if all(plain):
        return False  # whichever it is, it reads back as itself
    if shared == {"object"} and {one.shape.kind, other.shape.kind} <= {Kind.CLASS, Kind.TYPED_DICT}:
        return not (_differ_in_marks(one, other) or _has_more(one, other) or _has_more(other, one))
    return True


def _differ_in_marks(one: Member, other: Member) -> bool:
    return any(not one.marks[key] & other.marks[key] for key in one.marks.keys() & other.marks.keys())


def _has_more(one: Member, other: Member) -> bool:
    """Tell whether a key that one always has cannot stand in the other."""
    return other.allowed is not None and not one.required <= other.allowed


def _value(value: Any) -> tuple[type, Any]:
    try:
        hash(value)
    except TypeError:
        return type(value), None
    return type(value), value


def choose_object(members: Sequence[Member], content: dict[str, Any]) -> Member:
    """Return the member that an object is of.

    Raises:
        MisfitError: It is of none, or may be of two.
    """
    if len(members) == 1:
        return members[0]
    fitting = [member for member in members if member.fits(content)]
    if len(fitting) == 1:
        return fitting[0]
    names = " or ".join(member.shape.type.__qualname__ for member in fitting or members)
    if fitting:
        missing = sorted({key for member in fitting for key in member.marks if key not in content})
        raise MisfitError(f"may be of {names}: {', '.join(missing)} must tell which")
    marked = [
        member
        for member in members
        if member.marks and all(_value(content.get(key)) in values for key, values in member.marks.items())
    ]
    if len(marked) == 1:
        return marked[0]  # which then tells what is wrong inside
    for key in set.intersection(*(set(member.marks) for member in members)):
        values = " or ".join(repr(value) for member in members for _, value in sorted(member.marks[key], key=repr))
        raise MisfitError(f"must be {values}" if key in content else f"is missing; it is {values}").under(f".{key}")
    raise MisfitError(f"has the fields of none of {names}")
