"""The JSON forms of values that hold no others: how each is checked, written and read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final, NamedTuple
from uuid import UUID

from strata_core.graph import _moments as moments
from strata_core.graph._misfit import MisfitError, mismatch

__all__ = ["Dump", "Leaf", "Load", "exactly", "leaf_of", "literal"]

Dump = Callable[[Any], Any]
Load = Callable[[Any, Any], Any]

_STRING: Final = frozenset({"string"})


class Leaf(NamedTuple):
    """How a class is saved.

    Attributes:
        dump: Returns the JSON of a value, or raises.
        load: Returns the value of JSON, or raises.
        kinds: What its JSON may be.
        classes: Of which classes its values are, exactly.
    """

    dump: Dump
    load: Dump
    kinds: frozenset[str]
    classes: frozenset[type]


def exactly(kind: type, wanted: str) -> Dump:
    """Return the check that a value is of a class, and of no subclass."""

    def check(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise mismatch(value, wanted)

    return check


def literal(args: tuple[Any, ...]) -> Dump:
    """Return the check that a value is one of a literal's."""
    allowed = {(type(arg), arg) for arg in args}
    wanted = " or ".join(repr(arg) for arg in args)

    def check(value: Any) -> Any:
        try:
            if (type(value), value) in allowed:
                return value
        except TypeError:  # it cannot be hashed
            pass
        raise MisfitError(f"must be {wanted}")

    return check


def _itself(kind: type, wanted: str, json_kind: str) -> Leaf:
    check = exactly(kind, wanted)
    return Leaf(check, check, frozenset({json_kind}), frozenset({kind}))


def _as_text(
    kind: type, wanted: str, write: Callable[[Any], str], read: Callable[[str], Any], example: str, *classes: type
) -> Leaf:
    """Return a class whose values are texts, each of which has one form.

    Args:
        kind: The class.
        wanted: What it is called in errors, with its article.
        write: Returns the text of a value.
        read: Returns the value of a text, or raises ValueError.
        example: What a text must be, for errors.
        classes: The classes of its values; none for `kind` alone.
    """
    exact = frozenset(classes or (kind,))

    def dump(value: Any) -> str:
        if type(value) not in exact:
            raise mismatch(value, wanted)
        return write(value)

    def load(value: Any) -> Any:
        if type(value) is not str:
            raise mismatch(value, f"text: {example}")
        try:
            found = read(value)
            if write(found) == value:
                return found
        except ValueError:
            pass
        raise MisfitError(f"must be {example}")

    return Leaf(dump, load, _STRING, exact)


def _dump_float(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise mismatch(value, "a float")


def _load_float(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            return value
        return number if number == value else value  # beyond 53 bits only the int is exact
    raise mismatch(value, "a number")


def _dump_decimal(value: Any) -> str:
    if type(value) is not Decimal:
        raise mismatch(value, "a Decimal")
    if not value.is_finite():
        raise MisfitError(f"{value} is no number")
    return str(value)


def _load_decimal(value: Any) -> Decimal:
    if type(value) is not str:
        raise mismatch(value, "the text of a Decimal")
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise MisfitError("must be the text of a finite Decimal, such as '4150.25'")
    return number


def _write_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _read_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _paths(kind: type[PurePath], *, of: type[PurePath]) -> Leaf:
    return _as_text(kind, f"a {kind.__name__}", str, of, "a path as str() writes it, such as 'a/b'", of)


_BASE64: Final = "base64 text, such as 'AAE='"
_LEAVES: Final[dict[Any, Leaf]] = {
    type(None): Leaf(
        exactly(type(None), "None"), exactly(type(None), "null"), frozenset({"null"}), frozenset({type(None)})
    ),
    bool: _itself(bool, "a bool", "bool"),
    int: _itself(int, "an int", "int"),
    float: Leaf(_dump_float, _load_float, frozenset({"float", "int"}), frozenset({float, int})),
    str: _itself(str, "a str", "string"),
    Decimal: Leaf(_dump_decimal, _load_decimal, _STRING, frozenset({Decimal})),
    UUID: _as_text(UUID, "a UUID", str, UUID, "the text of a UUID, in lower case with hyphens"),
    datetime: Leaf(moments.dump_datetime, moments.load_datetime, _STRING, frozenset({datetime})),
    date: _as_text(date, "a date", date.isoformat, date.fromisoformat, "a date as ISO 8601 text, such as '2026-10-30'"),
    time: Leaf(moments.dump_time, moments.load_time, _STRING, frozenset({time})),
    timedelta: _as_text(
        timedelta,
        "a timedelta",
        moments.write_duration,
        moments.read_duration,
        "an ISO 8601 duration of days and seconds, such as 'P1DT90.5S'",
    ),
    bytes: _as_text(bytes, "bytes", _write_bytes, _read_bytes, _BASE64),
    bytearray: _as_text(bytearray, "a bytearray", _write_bytes, lambda text: bytearray(_read_bytes(text)), _BASE64),
    PurePosixPath: _paths(PurePosixPath, of=PurePosixPath),
    PureWindowsPath: _paths(PureWindowsPath, of=PureWindowsPath),
    PurePath: _paths(PurePath, of=type(PurePath())),
    Path: _paths(Path, of=type(Path())),
    type(Path()): _paths(type(Path()), of=type(Path())),
}
"""Each class with the functions that write and read its values."""

_ADDRESSES: Final = (
    "IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface",
)  # fmt: skip


def leaf_of(tp: Any) -> Leaf | None:
    """Return how a class is saved whose values hold no others; None for another one.

    Classes of modules that are not imported for their sake are found when they are there.
    """
    found = _LEAVES.get(tp)
    if found is not None:
        return found
    if tp.__module__ == "ipaddress" and tp.__name__ in _ADDRESSES:
        text = f"the text of an {tp.__name__} as str() writes it"
        _LEAVES[tp] = _as_text(tp, f"an {tp.__name__}", str, tp, text)
    elif tp.__module__ == "zoneinfo" and tp.__name__ == "ZoneInfo":
        _LEAVES[tp] = Leaf(_dump_zone, _load_zone, _STRING, frozenset((tp,)))
    return _LEAVES.get(tp)


def _dump_zone(value: Any) -> Any:
    from zoneinfo import ZoneInfo

    if type(value) is not ZoneInfo:
        raise mismatch(value, "a ZoneInfo")
    if value.key is None or ZoneInfo(value.key) is not value:
        raise MisfitError("must be a ZoneInfo as ZoneInfo('Europe/Vienna') gives it")
    return value.key


def _load_zone(value: Any) -> Any:
    from zoneinfo import ZoneInfo

    if type(value) is not str:
        raise mismatch(value, "the name of a time zone")
    try:
        return ZoneInfo(value)
    except (ValueError, OSError, LookupError):
        raise MisfitError("must be the name of a time zone, such as 'Europe/Vienna'") from None
