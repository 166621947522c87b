"""Classes with fields: what each is made of, and how an instance is made again.

A class is saved by its fields alone.  One that could not be made again of them, or holds more, is refused.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from strata_core.graph._fielded import is_model, is_struct, is_typed_dict
from strata_core.graph._hints import hints_of, is_required
from strata_core.graph._rebuilding import rebuild_check
from strata_core.graph._shapes import Field, Kind, Shape, UnsupportedTypeError, type_name

__all__ = ["class_shape"]


def class_shape(tp: Any) -> Shape | None:
    """Take a class with fields apart, or a generic one with arguments; None for another class.

    Raises:
        UnsupportedTypeError: Its instances cannot be made again of their fields.
    """
    cls = typing.get_origin(tp) or tp
    if getattr(cls, "__parameters__", ()) and not typing.get_args(tp) and not is_model(cls):
        raise UnsupportedTypeError(f"{type_name(tp)} is generic; write it with its arguments")
    if is_typed_dict(cls):
        fields = tuple(
            Field(key, key, hint, is_required(hint, key in cls.__required_keys__)) for key, hint in hints_of(tp).items()
        )
        return Shape(Kind.TYPED_DICT, cls, fields=fields)
    if is_struct(cls):
        from strata_core.graph._structs import struct_shape

        return struct_shape(tp)
    if is_model(cls):
        from strata_core.graph._models import model_shape

        return model_shape(cls)
    if attrs.has(cls):
        return _constructed(cls, _attrs_fields(tp, cls), _has_code(cls, "attrs"), _attrs_aliases(cls))
    if dataclasses.is_dataclass(cls):
        return _constructed(cls, _dataclass_fields(tp, cls), _has_code(cls, "dataclass"), {})
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        fields = tuple(
            Field(name, name, hint, name not in cls._field_defaults)
            for name, hint in hints_of(tp).items()
            if name in cls._fields
        )
        if len(fields) != len(cls._fields):
            raise UnsupportedTypeError(f"{type_name(tp)} does not declare the types of its fields; use NamedTuple")
        return Shape(Kind.CLASS, cls, fields=fields, make=lambda values: cls(**values))
    return None


def _attrs_fields(tp: Any, cls: Any) -> Iterator[Field]:
    hints = hints_of(tp)
    for field in attrs.fields(cls):
        _check_init(cls, field)
        convert: Any = field.converter
        if isinstance(field.converter, attrs.Converter):
            if convert.takes_self or convert.takes_field:
                raise UnsupportedTypeError(
                    f"the converter of field {field.name!r} of {type_name(cls)} takes more than the value"
                )
            convert = convert.converter
        hint = hints.get(field.name, Any)
        yield Field(field.name, field.name, hint, field.default is attrs.NOTHING, convert)


def _attrs_aliases(cls: Any) -> dict[str, str]:
    return {field.name: field.alias or field.name for field in attrs.fields(cls)}


def _dataclass_fields(tp: Any, cls: Any) -> Iterator[Field]:
    hints = hints_of(tp)
    for name, hint in hints.items():
        if hint is dataclasses.InitVar or isinstance(hint, dataclasses.InitVar):
            raise UnsupportedTypeError(f"{name!r} of {type_name(cls)} is an InitVar: it is no part of what is saved")
    for field in dataclasses.fields(cls):
        _check_init(cls, field)
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        yield Field(field.name, field.name, hints[field.name], required)


def _check_init(cls: Any, field: Any) -> None:
    if not field.init:
        raise UnsupportedTypeError(
            f"the field {field.name!r} of {type_name(cls)} has init=False: a resume could not give its value back"
        )


def _has_code(cls: Any, kind: str) -> bool:
    """Tell whether making an instance runs code of the class beyond setting its fields."""
    if kind == "attrs":
        if any(hasattr(cls, name) for name in ("__attrs_post_init__", "__attrs_pre_init__", "__attrs_init__")):
            return True
        if any(field.validator is not None for field in attrs.fields(cls)):
            return True
    elif hasattr(cls, "__post_init__") or hasattr(cls, "__pydantic_validator__"):
        return True
    if cls.__new__ is not object.__new__:
        return True
    code = getattr(cls.__init__, "__code__", None)
    return code is None or not code.co_filename.startswith("<")  # those that attrs and dataclasses make have no file


def _constructed(cls: Any, fields: Iterator[Field], has_code: bool, aliases: dict[str, str]) -> Shape:
    """Return a class whose constructor takes its fields by name, and needs nothing else."""
    found = tuple(fields)
    names = {field.name: aliases.get(field.name, field.name) for field in found}
    try:
        signature = inspect.signature(cls.__init__)
        signature.bind(None, **{names[field.name]: None for field in found if field.required})
        signature.bind(None, **dict.fromkeys(names.values()))
    except (TypeError, ValueError) as error:
        text = f"the constructor of {type_name(cls)} does not take just its fields: {error}"
        raise UnsupportedTypeError(text) from None
    try:
        object.__new__(cls)
    except TypeError:
        text = f"{type_name(cls)} is abstract, or built on a class with a content of its own, which is not saved"
        raise UnsupportedTypeError(text) from None

    def make(values: dict[str, Any]) -> Any:
        return cls(**{names[name]: item for name, item in values.items()})

    check: Callable[[Any], None] | None = rebuild_check(cls, found, make) if has_code else None
    return Shape(Kind.CLASS, cls, fields=found, make=make, check=check)
