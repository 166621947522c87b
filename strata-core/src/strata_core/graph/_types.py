"""Which types a state may be made of; ``STATE.md`` lists them, with their JSON forms.

Each has one JSON form, and reads back as exactly itself.
"""

from __future__ import annotations

import types
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping, MutableMapping
from enum import Enum, Flag
from typing import Any, Final, Literal, Union

from strata_core.graph._classes import class_shape
from strata_core.graph._fielded import is_typed_dict
from strata_core.graph._hints import unwrap
from strata_core.graph._leaves import leaf_of
from strata_core.graph._object_keys import check_key_type
from strata_core.graph._shapes import Kind, Shape, UnsupportedTypeError, type_name

__all__ = ["read_shape"]

_ARRAYS: Final = (list, set, frozenset, deque)
_OBJECTS: Final = {dict: dict, Mapping: dict, MutableMapping: dict, OrderedDict: OrderedDict, defaultdict: defaultdict}
_SAY_WHICH: Final = {
    "Sequence": "list[...] or tuple[..., ...]",
    "MutableSequence": "list[...]",
    "Collection": "list[...] or tuple[..., ...]",
    "Iterable": "list[...] or tuple[..., ...]",
    "Set": "frozenset[...] or set[...]",
    "MutableSet": "set[...]",
}


def read_shape(tp: Any) -> Shape:
    """Take a type apart.

    Raises:
        UnsupportedTypeError: It has no JSON form here.
    """
    tp = unwrap(tp)
    if tp is Any or tp is object:
        return Shape(Kind.ANY, tp)
    if isinstance(tp, type) and leaf_of(tp) is not None:
        return Shape(Kind.LEAF, tp)
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is Literal:
        if all(type(arg) in (str, int, bool, type(None)) for arg in args):
            return Shape(Kind.LITERAL, tp, args)
        raise UnsupportedTypeError("a Literal may hold str, int, bool and None")
    if origin is Union or origin is types.UnionType:
        return _union(tp, args)
    cls = origin or tp
    if cls in _ARRAYS:
        return _array(cls, args or (Any,))
    if cls is tuple:
        if not args or (len(args) == 2 and args[1] is Ellipsis):
            return Shape(Kind.ARRAY, tuple, args[:1] or (Any,))
        return Shape(Kind.FIXED_TUPLE, tuple, args)
    if cls in _OBJECTS:
        return _object(_OBJECTS[cls], args or (str, Any))
    if cls is Counter:
        return _object(Counter, (args[0] if args else str, int))
    if isinstance(cls, type):
        if issubclass(cls, Enum):
            return _enum(cls)
        shape = class_shape(tp)
        if shape is not None:
            return shape
    if isinstance(tp, str | typing.ForwardRef):
        text = getattr(tp, "__forward_arg__", tp)
        raise UnsupportedTypeError(f"the forward reference {text!r} stands where Python does not resolve it")
    if isinstance(tp, typing.TypeVar):
        raise UnsupportedTypeError(f"the type variable {tp} stands for nothing; write the class with its arguments")
    hint = (
        _SAY_WHICH.get(getattr(cls, "__name__", ""), "") if getattr(cls, "__module__", "") == "collections.abc" else ""
    )
    raise UnsupportedTypeError(f"{type_name(tp)} has no JSON form here" + (f": say {hint}" if hint else ""))


def _array(cls: Any, args: tuple[Any, ...]) -> Shape:
    if cls in (set, frozenset) and not _is_hashable(args[0]):
        raise UnsupportedTypeError(f"{type_name(args[0])} cannot be hashed, and so not stand in a {cls.__name__}")
    return Shape(Kind.ARRAY, cls, args)


def _is_hashable(tp: Any) -> bool:
    tp = unwrap(tp)
    cls = typing.get_origin(tp) or tp
    return not isinstance(cls, type) or (cls.__hash__ is not None and not is_typed_dict(cls))


def _object(cls: Any, args: tuple[Any, ...]) -> Shape:
    check_key_type(args[0])
    return Shape(Kind.OBJECT, cls, args)


def _enum(tp: Any) -> Shape:
    members = tp.__members__.values()
    if issubclass(tp, Flag):
        return Shape(Kind.FLAG, tp)
    if all(type(member.value) in (str, int) for member in members):
        return Shape(Kind.ENUM, tp, tuple(members))
    raise UnsupportedTypeError(f"the values of {type_name(tp)} must be str or int")


def _union(tp: Any, args: tuple[Any, ...]) -> Shape:
    from strata_core.graph._unions import find_members  # which takes the members apart in turn

    members: dict[Any, None] = {}
    rest = list(reversed(args))
    while rest:
        item = rest.pop()
        inner = unwrap(item)
        if typing.get_origin(inner) in (Union, types.UnionType):
            rest += reversed(typing.get_args(inner))
        else:
            members[inner] = None
    others = [member for member in members if member is not type(None)]
    if len(others) > 1:
        find_members(tp, tuple(members))
    return Shape(Kind.UNION, tp, tuple(members))
