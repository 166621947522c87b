"""Types, taken apart."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, get_args

__all__ = ["Field", "Kind", "Shape", "UnsupportedTypeError", "type_name"]


class Kind(Enum):
    """How a type is handled."""

    ANY = "any"
    LEAF = "leaf"
    ENUM = "enum"
    FLAG = "flag"
    LITERAL = "literal"
    ARRAY = "array"
    FIXED_TUPLE = "fixed tuple"
    OBJECT = "object"
    UNION = "union"
    CLASS = "class"
    TYPED_DICT = "typed dict"


class Field(NamedTuple):
    """A field of a class.

    Attributes:
        name: Its name in Python.
        key: Its name in JSON.
        type: Its type.
        required: Whether JSON must have it.
        convert: What the constructor makes of a value of it; None for nothing.
    """

    name: str
    key: str
    type: Any
    required: bool
    convert: Callable[[Any], Any] | None = None


class Shape(NamedTuple):
    """A type, taken apart.

    Attributes:
        kind: How it is handled.
        type: The class of its values, without wrappers such as ``Annotated``.
        args: The types in it: of items, of keys and values, or the members of a union or literal.
        fields: The fields of a class.
        make: Makes an instance of a class of the values of its fields, by their names; extra ones of an open class
            among them.
        check: Raises when an instance of a class could not be made again as it is.
        tag: A key of the JSON object, and the text that stands there.
        is_open: Whether the class keeps keys that are none of its fields.
    """

    kind: Kind
    type: Any
    args: tuple[Any, ...] = ()
    fields: tuple[Field, ...] = ()
    make: Callable[[dict[str, Any]], Any] | None = None
    check: Callable[[Any], None] | None = None
    tag: tuple[str, str | int] | None = None
    is_open: bool = False


class UnsupportedTypeError(Exception):
    """A type has no JSON form here."""


def type_name(tp: Any) -> str:
    """Return what a type is called, for people."""
    if isinstance(tp, type) and not get_args(tp):
        return tp.__qualname__ if tp.__module__ == "builtins" else f"{tp.__module__}.{tp.__qualname__}"
    return str(tp)
