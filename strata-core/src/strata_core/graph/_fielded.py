"""Which classes have fields that can be saved; modules that are not there are not imported for that."""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import Any

import attrs

__all__ = ["is_class_with_fields", "is_model", "is_struct", "is_typed_dict", "special"]


def is_class_with_fields(cls: Any) -> bool:
    """Tell whether a class is one that a state can be an instance of."""
    return attrs.has(cls) or dataclasses.is_dataclass(cls) or is_struct(cls) or is_model(cls)


def is_struct(cls: Any) -> bool:
    """Tell whether a class is one of msgspec's, which is never imported for that."""
    base = getattr(sys.modules.get("msgspec"), "Struct", None)
    return base is not None and issubclass(cls, base)


def is_model(cls: Any) -> bool:
    """Tell whether a class is one of pydantic's, which is never imported for that."""
    base = getattr(sys.modules.get("pydantic.main"), "BaseModel", None)
    return base is not None and issubclass(cls, base)


def special(name: str) -> tuple[Any, ...]:
    """Return what `typing` and, if it is there, `typing_extensions` call by that name."""
    modules = (typing, sys.modules.get("typing_extensions"))
    return tuple(getattr(module, name) for module in modules if hasattr(module, name))


def is_typed_dict(tp: Any) -> bool:
    """Tell whether a class is a TypedDict, of either module."""
    return any(check(tp) for check in special("is_typeddict"))
