"""Classes of msgspec: saved by their fields under the names that msgspec itself gives them, with their tag."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from strata_core.graph._hints import hints_of
from strata_core.graph._misfit import MisfitError
from strata_core.graph._rebuilding import rebuild_check
from strata_core.graph._shapes import Field, Kind, Shape, UnsupportedTypeError, type_name

__all__ = ["struct_shape"]


def struct_shape(tp: Any) -> Shape:
    """Take a struct apart.

    Raises:
        UnsupportedTypeError: Its instances are no JSON objects.
    """
    import msgspec

    cls = typing.get_origin(tp) or tp
    config = cls.__struct_config__
    if config.array_like:
        raise UnsupportedTypeError(f"{type_name(cls)} is array_like, and a class is saved as an object of its fields")
    hints = hints_of(tp)
    fields = tuple(
        Field(info.name, info.encode_name, hints[info.name], info.required) for info in msgspec.structs.fields(cls)
    )
    constrained = [field for field in fields if _is_constrained(field.type)]

    def make(values: dict[str, Any]) -> Any:
        value = cls(**values)
        for field in constrained:
            try:
                msgspec.convert(getattr(value, field.name), field.type, strict=True)
            except msgspec.ValidationError as error:
                raise MisfitError(str(error)).under(f".{field.key}") from None
        return value

    has_code = constrained or hasattr(cls, "__post_init__")
    check: Callable[[Any], None] | None = rebuild_check(cls, fields, make) if has_code else None
    tag = None if config.tag is None else (config.tag_field, config.tag)
    return Shape(Kind.CLASS, cls, fields=fields, make=make, check=check, tag=tag)


def _is_constrained(hint: Any) -> bool:
    """Tell whether `msgspec.Meta` stands in a type: an instance is not checked for it when it is made."""
    from msgspec import Meta

    if typing.get_origin(hint) is typing.Annotated and any(isinstance(item, Meta) for item in hint.__metadata__):
        return True
    return any(map(_is_constrained, typing.get_args(hint)))
