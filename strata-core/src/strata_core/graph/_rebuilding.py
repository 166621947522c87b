"""Whether an instance would be made again as it is: of classes whose constructors run code of their own.

A constructor runs at every resume.  One that counts, normalises or refuses would make another state of a saved one, or
none; that is told when the state is saved, and not days later.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from strata_core.graph._copying import isolate
from strata_core.graph._misfit import MisfitError
from strata_core.graph._shapes import Field

__all__ = ["is_same", "made", "rebuild_check", "settled"]


def made(cls: Any, make: Callable[[dict[str, Any]], Any], values: dict[str, Any]) -> Any:
    """Return a new instance.

    Raises:
        MisfitError: The class refuses the values.
    """
    try:
        return make(values)
    except MisfitError:
        raise
    except Exception as error:
        raise MisfitError(f"{cls.__qualname__} refuses it: {type(error).__name__}: {error}") from error


def rebuild_check(
    cls: Any,
    fields: Sequence[Field],
    make: Callable[[dict[str, Any]], Any],
    extras: Callable[[Any], dict[str, Any]] | None = None,
) -> Callable[[Any], None]:
    """Return what raises when an instance, made again of its fields, would have others.

    Args:
        cls: Its class.
        fields: The fields of that.
        make: Makes an instance of the values of its fields, by their names.
        extras: Returns what else it is made of; None for nothing.
    """
    names = [field.name for field in fields]

    def check(value: Any) -> None:
        values = {name: getattr(value, name) for name in names}
        again = made(cls, make, isolate(values if extras is None else values | extras(value)))
        for name in names:
            if not is_same(getattr(value, name), getattr(again, name)):
                problem = f"is another one when {cls.__qualname__} is made again of its fields, as every resume does"
                raise MisfitError(problem).under(f".{name}")

    return check


def settled(inner: Callable[[Any], Any], convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a hook that refuses a value which its own converter would change again at every resume."""

    def dump(value: Any) -> Any:
        content = inner(value)
        try:
            again = convert(value)
            same = is_same(value, again)
        except Exception as error:
            raise MisfitError(f"its converter refuses its own result: {type(error).__name__}: {error}") from error
        if not same:
            raise MisfitError("its converter changes its own result, so that every resume would change the state")
        return content

    return dump


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, in their types as well, also where a class does not compare its fields."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in (list, tuple, deque):
        return len(one) == len(other) and all(map(is_same, one, other))
    if kind is dict:
        return one.keys() == other.keys() and all(is_same(item, other[key]) for key, item in one.items())
    names: list[str] = []
    if attrs.has(kind):
        names = [field.name for field in attrs.fields(kind)]
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    if names:
        return all(is_same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)
