"""A recorded call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import attrs

__all__ = ["Call", "snapshot"]

_DEEPEST: Final = 210
"""Deeper than any state that a store takes; below that, a value is kept as it is."""
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, datetime, timedelta})
"""What cannot change; most of what is copied is made of these."""


def _content(value: object) -> object:
    """Return a value in which everything is compared by content, errors by class and text."""
    if isinstance(value, BaseException):
        return type(value), str(value)
    kind: type[Any] = type(value)
    if attrs.has(kind):
        return kind, {field.name: _content(getattr(value, field.name)) for field in attrs.fields(kind)}
    if isinstance(value, Mapping):
        return {key: _content(inner) for key, inner in value.items()}
    if isinstance(value, AbstractSet):
        return set(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_content(inner) for inner in value]
    return value


@attrs.frozen(hash=False)
class Call:
    """One call that came to its end.

    Two calls are equal when their operations, arguments, outcomes and errors are, all compared by content: a commit, a
    list and an error have no identity here.

    Attributes:
        op: The name of the method.
        arguments: By name, as they were when the call was made; those left at their default are left out.
        outcome: What it returned; None also for a call that raised.
        error: What it raised, `asyncio.CancelledError` included; None for a call that returned.
    """

    op: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict, eq=_content)
    outcome: Any = attrs.field(default=None, eq=_content)
    error: BaseException | None = attrs.field(default=None, eq=_content)


def snapshot(value: Any) -> Any:
    """Copy what could change later: records, and the lists and dictionaries in them.

    Whatever else a caller may hand in, however odd, is kept as it is: a recorder must not fail where a store would not.
    """
    return _copy(value, {}, _DEEPEST)


def _copy(value: Any, copies: dict[int, Any], depth: int) -> Any:
    kind: Any = type(value)
    if kind in _PLAIN or depth == 0:
        return value
    if id(value) in copies:
        return copies[id(value)]
    if kind is dict:
        copied: dict[Any, Any] = value.copy()
        copies[id(value)] = copied
        if not _PLAIN.issuperset(map(type, value.values())):
            copied.update({key: _copy(inner, copies, depth - 1) for key, inner in value.items()})
        return copied
    if kind is list:
        copied_list: list[Any] = value.copy()
        copies[id(value)] = copied_list
        if not _PLAIN.issuperset(map(type, value)):
            copied_list[:] = [_copy(inner, copies, depth - 1) for inner in value]
        return copied_list
    if kind is tuple:
        return tuple([_copy(inner, copies, depth - 1) for inner in value])
    fields = _fields(kind)
    if fields is not None:
        return kind(**{alias: _copy(getattr(value, name), copies, depth - 1) for name, alias in fields})
    return value


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the names and aliases of the fields of a record of core, and None for any other class."""
    if not (attrs.has(kind) and kind.__module__.startswith("strata_core.")):
        return None
    return tuple((field.name, field.alias or field.name) for field in attrs.fields(kind) if field.init)
