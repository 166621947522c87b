"""The JSON forms of values that hold no others: how each is checked, written and read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from strata_core.graph._misfit import MisfitError, mismatch
from strata_core.graph._types import Shape

__all__ = ["LEAVES", "Dump", "Load", "exactly", "literal", "one_of"]

Dump = Callable[[Any], Any]
Load = Callable[[Any, Any], Any]


def exactly(kind: type, wanted: str) -> Dump:
    """Return the check that a value is of a class, and of no subclass."""

    def check(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise mismatch(value, wanted)

    return check


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
    try:
        number = Decimal(_text(value, "the text of a Decimal"))
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise MisfitError("must be the text of a finite Decimal, such as '4150.25'")
    return number


def _load_uuid(value: Any) -> UUID:
    try:
        found = UUID(_text(value, "the text of a UUID"))
    except ValueError:
        found = None
    if found is None or str(found) != value:
        raise MisfitError("must be the text of a UUID, in lower case with hyphens")
    return found


def _dump_uuid(value: Any) -> str:
    if type(value) is not UUID:
        raise mismatch(value, "a UUID")
    return str(value)


def _dump_datetime(value: Any) -> str:
    if type(value) is not datetime:
        raise mismatch(value, "a datetime")
    if value.utcoffset() is None:
        raise MisfitError("must be an aware datetime, for example datetime.now(timezone.utc)")
    text = value.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _load_datetime(value: Any) -> datetime:
    text = _text(value, "the text of an aware datetime")
    try:
        moment = datetime.fromisoformat(text) if "T" in text else None
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise MisfitError("must be an aware datetime as ISO 8601 text, such as '2026-10-30T14:49:52Z'")
    return moment


def _dump_date(value: Any) -> str:
    if type(value) is not date:
        raise mismatch(value, "a date")
    return value.isoformat()


def _load_date(value: Any) -> date:
    text = _text(value, "the text of a date")
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise MisfitError("must be a date as ISO 8601 text, such as '2026-10-30'")
    return day


def _text(value: Any, wanted: str) -> str:
    if type(value) is str:
        return value
    raise mismatch(value, wanted)


_NONE: Final = exactly(type(None), "None")
_BOOL: Final = exactly(bool, "a bool")
_INT: Final = exactly(int, "an int")
_STR: Final = exactly(str, "a str")
LEAVES: Final[dict[type, tuple[Dump, Dump]]] = {
    type(None): (_NONE, exactly(type(None), "null")),
    bool: (_BOOL, _BOOL),
    int: (_INT, _INT),
    float: (_dump_float, _load_float),
    str: (_STR, _STR),
    Decimal: (_dump_decimal, _load_decimal),
    UUID: (_dump_uuid, _load_uuid),
    datetime: (_dump_datetime, _load_datetime),
    date: (_dump_date, _load_date),
}
"""Each class with the functions that write and read its values."""


def one_of(allowed: frozenset[type]) -> Dump:
    """Return the check that a value is of one of some scalar classes."""
    wanted = " or ".join(sorted("None" if kind is type(None) else kind.__name__ for kind in allowed))
    accepted = allowed | {int} if float in allowed else allowed

    def check(value: Any) -> Any:
        if type(value) in accepted:
            return value
        raise mismatch(value, wanted)

    return check


def literal(shape: Shape) -> Dump:
    """Return the check that a value is one of a literal's."""
    allowed = {(type(arg), arg) for arg in shape.args}
    wanted = " or ".join(repr(arg) for arg in shape.args)

    def check(value: Any) -> Any:
        try:
            if (type(value), value) in allowed:
                return value
        except TypeError:  # it cannot be hashed
            pass
        raise MisfitError(f"must be {wanted}")

    return check
