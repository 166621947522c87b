"""Copies of states, so that a node that fails changes nothing.

A value that is immutable all the way down is its own copy: no object is made for it.  That is judged by the value, not
by annotations, which Python does not enforce.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from functools import cached_property
from operator import is_
from types import BuiltinFunctionType, EllipsisType, FunctionType, NoneType, NotImplementedType
from typing import Any, Final

import attrs

__all__ = ["isolate"]

# Immutable classes of modules that are not imported for their sake.
_KNOWN: Final = {
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("ipaddress", "IPv4Address"),
    ("ipaddress", "IPv6Address"),
    ("pathlib", "PurePath"),
    ("pathlib", "PurePosixPath"),
    ("pathlib", "PureWindowsPath"),
    ("pathlib", "PosixPath"),
    ("pathlib", "WindowsPath"),
    ("uuid", "UUID"),
    ("zoneinfo", "ZoneInfo"),
}

_Copier = Callable[[Any], Any]

# Exact types: a subclass may add attributes that can change.
_ATOMS: Final = {
    NoneType, bool, int, float, complex, str, bytes, datetime, date, time, timedelta, timezone,
    type, FunctionType, BuiltinFunctionType, EllipsisType, NotImplementedType,
}  # fmt: skip


def isolate(value: Any) -> Any:
    """Return a value that can be changed in place without changing `value`.

    It is `value` itself when nothing in it can change.  An object that is referred to twice is copied twice, as it
    would be by a save and a load.

    Raises:
        RecursionError: The value contains itself, or nests too deeply.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    return (_COPIERS.get(kind) or _learn(kind))(value)


def _dict(value: dict[Any, Any]) -> Any:
    atoms, copiers = _ATOMS, _COPIERS
    if atoms.issuperset(map(type, value.values())):
        return value.copy()
    return {
        key: item if (kind := type(item)) in atoms else (copiers.get(kind) or _learn(kind))(item)
        for key, item in value.items()
    }


def _list(value: Sequence[Any]) -> list[Any]:
    atoms, copiers = _ATOMS, _COPIERS
    if atoms.issuperset(map(type, value)):
        return [*value]
    return [item if (kind := type(item)) in atoms else (copiers.get(kind) or _learn(kind))(item) for item in value]


def _tuple(value: tuple[Any, ...]) -> Any:
    if _ATOMS.issuperset(map(type, value)):
        return value
    items = _list(value)
    return value if all(map(is_, items, value)) else tuple(items)


def _named_tuple(value: Any) -> Any:
    items = _list(value)
    return value if all(map(is_, items, value)) else type(value)._make(items)


def _set(value: set[Any]) -> Any:
    return set(map(isolate, value))


def _frozenset(value: frozenset[Any]) -> Any:
    items = [(item, isolate(item)) for item in value]
    return value if all(old is new for old, new in items) else frozenset(new for _, new in items)


def _atom(value: Any) -> Any:
    return value


_COPIERS: Final[dict[type, _Copier]] = {
    dict: _dict,
    list: _list,
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
}


def _learn(kind: type) -> _Copier:
    """Find out, once for each class, how its instances are copied."""
    copier: _Copier = copy.deepcopy
    if issubclass(kind, type | enum.Enum):
        copier = _atom
    elif (kind.__module__, kind.__qualname__) in _KNOWN:
        _ATOMS.add(kind)
        copier = _atom
    elif hasattr(kind, "__deepcopy__") or hasattr(kind, "__copy__"):
        copier = copy.deepcopy
    elif issubclass(kind, tuple) and hasattr(kind, "_make") and getattr(kind, "__slots__", None) == ():
        copier = _named_tuple
    elif (names := _field_names(kind)) is not None:
        copier = _object_copier(kind, names)
    _COPIERS[kind] = copier
    return copier


def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of an attrs class or a dataclass that has no other base with content."""
    if attrs.has(kind):
        names = tuple(field.name for field in attrs.fields(kind))
    elif dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
    else:
        return None
    if not _slots(kind) <= {"__weakref__", "__dict__", *names}:
        return None
    if kind.__basicsize__ > object.__basicsize__ + 8 * (len(names) + 2) or not _is_plain_object(kind):
        return None
    return names


def _slots(kind: type) -> set[str]:
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        slots = base.__dict__.get("__slots__", ())
        found |= {slots} if isinstance(slots, str) else set(slots)
    return found


def _is_plain_object(kind: type) -> bool:
    try:
        object.__new__(kind)
    except TypeError:  # it is built on something like dict or Exception
        return False
    return True


def _object_copier(kind: type, names: tuple[str, ...]) -> _Copier:
    frozen = _is_frozen(kind, names)
    has_dict = bool(getattr(kind, "__dictoffset__", 0))
    in_dict = len(set(names) - _slots(kind))
    # Computed again when it is asked for: a node could have changed it.
    left_out = {name for base in kind.__mro__ for name, item in vars(base).items() if isinstance(item, cached_property)}
    put = object.__setattr__
    make = object.__new__
    changes = _changes_finder(kind, names)

    def rebuild(value: Any, changed: list[tuple[str, Any]]) -> Any:
        new: Any = make(kind)
        if has_dict:
            extra = vars(value)
            for name, item in extra.items():
                if name not in left_out:
                    put(new, name, item if name in names else isolate(item))
            for name in names:
                if name not in extra:
                    put(new, name, getattr(value, name))
        else:
            for name in names:
                put(new, name, getattr(value, name))
        for name, item in changed:
            put(new, name, item)
        return new

    def copy_frozen(value: Any) -> Any:
        changed = changes(value)
        # What else it holds may be anything.
        return rebuild(value, changed) if changed or (has_dict and len(vars(value)) > in_dict) else value

    def copy_mutable(value: Any) -> Any:
        return rebuild(value, changes(value))

    return copy_frozen if frozen else copy_mutable


def _changes_finder(kind: type, names: tuple[str, ...]) -> Callable[[Any], list[tuple[str, Any]]]:
    """Generate the function that tells which fields of an instance have to be copied, with their copies."""
    lines = [
        f" item = value.{name}\n"
        " if type(item) not in atoms:\n"
        "  copied = isolate(item)\n"
        f"  if copied is not item: changed.append(({name!r}, copied))\n"
        for name in names
    ]
    source = "def changes(value):\n changed = []\n" + "".join(lines) + " return changed\n"
    namespace: dict[str, Any] = {"atoms": _ATOMS, "isolate": isolate}
    exec(compile(source, f"<isolate {kind.__qualname__}>", "exec"), namespace)  # noqa: S102  # names of fields
    changes: Callable[[Any], list[tuple[str, Any]]] = namespace["changes"]
    return changes


def _is_frozen(kind: type, names: tuple[str, ...]) -> bool:
    """Tell whether no field of a class can be set, by trying it on an empty instance."""
    blank: Any = object.__new__(kind)
    for name in names:
        try:
            setattr(blank, name, None)
        except (attrs.exceptions.FrozenError, dataclasses.FrozenInstanceError):
            continue
        except Exception:  # noqa: BLE001  # a validator or a property of the class ran: it can be set
            return False
        return False
    return bool(names) or not getattr(kind, "__dictoffset__", 0)
