"""The types that a class declares for its fields: resolved, with what its type variables stand for."""

from __future__ import annotations

import inspect
import typing
from typing import Any, ClassVar, Generic, NewType, Protocol, TypeVar

from strata_core.graph._fielded import is_typed_dict, special
from strata_core.graph._shapes import UnsupportedTypeError, type_name

__all__ = ["hints_of", "is_alias", "is_required", "substitute", "unwrap"]


def is_alias(tp: Any) -> bool:
    """Tell whether a type is a name that stands for another one, as `type` statements make them."""
    return isinstance(typing.get_origin(tp) or tp, special("TypeAliasType"))


def unwrap(tp: Any) -> Any:
    """Return a type without what does not change its values: aliases, new names, annotations."""
    while True:
        origin = typing.get_origin(tp)
        if tp is None:
            return type(None)
        if isinstance(tp, NewType):
            tp = tp.__supertype__
        elif is_alias(tp):
            alias = origin or tp
            tp = substitute(alias.__value__, dict(zip(alias.__type_params__, typing.get_args(tp), strict=False)))
        elif origin in (typing.Annotated, typing.Final, typing.Required, typing.NotRequired, *special("ReadOnly")):
            tp = typing.get_args(tp)[0]
        else:
            return tp


def is_required(hint: Any, total: bool) -> bool:
    """Tell whether a TypedDict must have a key; the class itself cannot read that from annotations that are text."""
    while typing.get_origin(hint) in (typing.Annotated, *special("ReadOnly")):
        hint = typing.get_args(hint)[0]
    origin = typing.get_origin(hint)
    return origin is typing.Required or (origin is not typing.NotRequired and total)


def substitute(tp: Any, bindings: dict[Any, Any]) -> Any:
    """Return a type with other types for its type variables."""
    if isinstance(tp, TypeVar):
        return bindings.get(tp, tp)
    variables = () if isinstance(tp, type) and not typing.get_args(tp) else getattr(tp, "__parameters__", ())
    if not any(variable in bindings for variable in variables):
        return tp
    return tp[tuple(bindings.get(variable, variable) for variable in variables)]


def hints_of(tp: Any) -> dict[str, Any]:
    """Return the types of the fields of a class, or of a generic one with arguments, by their names.

    Raises:
        UnsupportedTypeError: The annotations cannot be read.
    """
    try:
        hints = _typed_dict_hints(tp) if is_typed_dict(typing.get_origin(tp) or tp) else _class_hints(tp)
    except Exception as error:  # noqa: BLE001  # annotations run whatever code they hold
        raise UnsupportedTypeError(f"the annotations of {type_name(tp)} cannot be read: {error}") from None
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar and hint != ClassVar}


def _class_hints(tp: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    bindings = _bindings(tp)
    for cls in reversed((typing.get_origin(tp) or tp).__mro__):
        if cls in bindings and inspect.get_annotations(cls):
            every = typing.get_type_hints(cls, include_extras=True)
            found |= {name: substitute(every[name], bindings[cls]) for name in inspect.get_annotations(cls)}
    return found


def _bindings(tp: Any) -> dict[Any, dict[Any, Any]]:
    """Return what the type variables of a class and of its bases stand for, by the class."""
    found: dict[Any, dict[Any, Any]] = {}
    rest = [tp]
    while rest:
        item = rest.pop()
        cls = typing.get_origin(item) or item
        if cls in found and not typing.get_args(item):
            continue
        found[cls] = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(item), strict=False))
        rest += [substitute(base, found[cls]) for base in _bases(cls)]
    return found


def _bases(cls: Any) -> tuple[Any, ...]:
    """Return the bases of a class as they are written, with their arguments."""
    bases: tuple[Any, ...] = cls.__dict__.get("__orig_bases__", cls.__bases__)
    origins = [typing.get_origin(base) or base for base in bases]
    return tuple(
        base
        for base, origin in zip(bases, origins, strict=True)
        if origin not in (Generic, Protocol) and (isinstance(origin, type) or is_typed_dict(origin))
    )


def _typed_dict_hints(tp: Any) -> dict[str, Any]:
    cls = typing.get_origin(tp) or tp
    bindings = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(tp), strict=False))
    found: dict[str, Any] = {}
    own = dict(cls.__annotations__)
    for base in _bases(cls):
        base_cls = typing.get_origin(base) or base
        if is_typed_dict(base_cls):
            found |= _typed_dict_hints(substitute(base, bindings))
            for name, hint in base_cls.__annotations__.items():
                if own.get(name) is hint:
                    del own[name]
    every = typing.get_type_hints(cls, include_extras=True)
    return found | {name: substitute(every[name], bindings) for name in own}
