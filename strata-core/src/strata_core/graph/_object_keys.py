"""The keys of a dict: each type that a key may be of, and the text it is as the key of a JSON object."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable
from datetime import date
from enum import Enum, Flag
from typing import Any, Final, Literal
from uuid import UUID

from strata_core.graph._hints import unwrap
from strata_core.graph._leaves import leaf_of
from strata_core.graph._misfit import MisfitError, mismatch
from strata_core.graph._shapes import UnsupportedTypeError, type_name

__all__ = ["Codec", "check_key_type", "key_codec"]

Codec = tuple[Callable[[Any], str], Callable[[str], Any]]
"""What writes a key, and what reads one."""

_INT: Final = re.compile(r"-?[1-9][0-9]*|0").fullmatch


def check_key_type(tp: Any) -> None:
    """Raise unless a type has a text of its own for each of its values.

    Raises:
        UnsupportedTypeError: It has none here.
    """
    tp = unwrap(tp)
    if tp is Any or tp in (str, int, UUID, date):
        return
    if typing.get_origin(tp) is Literal and all(type(arg) is str for arg in typing.get_args(tp)):
        return
    if isinstance(tp, type) and issubclass(tp, Enum) and not issubclass(tp, Flag):
        kinds = {type(member.value) for member in tp.__members__.values()}
        if kinds in ({str}, {int}):
            return
    text = "str, int, UUID, date, an Enum whose values are all str or all int, or a Literal of str"
    raise UnsupportedTypeError(f"the keys of a dict may be {text}, not {type_name(tp)}")


def key_codec(tp: Any) -> Codec | None:
    """Return what writes and reads keys of a type that `check_key_type` lets pass; None for ``str``."""
    tp = unwrap(tp)
    if tp is str or tp is Any:
        return None
    if tp is int:
        return _dump_int, _load_int
    if typing.get_origin(tp) is Literal:
        return _closed(tp, {arg: arg for arg in typing.get_args(tp)}, str)
    if issubclass(tp, Enum):
        return _closed(tp, {str(member.value): member for member in tp.__members__.values()}, tp)
    leaf = leaf_of(tp)
    assert leaf is not None, "UUID and date are leaves"
    return leaf.dump, leaf.load


def _dump_int(value: Any) -> str:
    if type(value) is not int:
        raise mismatch(value, "an int")
    try:
        return str(value)
    except ValueError:
        raise MisfitError("has more than 4300 digits; store it as text") from None


def _load_int(text: str) -> int:
    try:
        if _INT(text):
            return int(text)
    except ValueError:
        pass
    raise MisfitError("must be a whole number as text")


def _closed(tp: Any, members: dict[str, Any], cls: type) -> Codec:
    texts = {member: text for text, member in members.items()}

    def dump(value: Any) -> str:
        if type(value) is cls and value in texts:
            return texts[value]
        raise mismatch(value, f"a key of type {type_name(tp)}")

    def load(text: str) -> Any:
        if text in members:
            return members[text]
        raise MisfitError(f"must be {' or '.join(map(repr, members))}")

    return dump, load
