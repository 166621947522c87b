"""The rules for arguments that every store shares, each checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from strata_core.clock import micros
from strata_core.errors import InvalidInputError

__all__ = [
    "check_int",
    "check_limit",
    "check_metadata",
    "check_moment",
    "check_owner",
    "check_revision_text",
    "check_text",
    "check_thread_id",
    "check_ttl",
    "check_write_id",
    "shown",
]

MAX_ID_BYTES: Final = 512
MAX_KEY_BYTES: Final = 128
MAX_VALUE_BYTES: Final = 1024
MAX_LIMIT: Final = 1000
MAX_TTL: Final = timedelta(days=3650)
MAX_SEQUENCE: Final = 2**31 - 1


def shown(value: object) -> str:
    """Return a value as a message shows it: its repr, or its type when that cannot be spelled out."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # an integer of too many digits, or a broken __repr__
        return f"something of type {type(value).__name__}"


def check_thread_id(value: object, argument: str = "thread_id") -> str:
    """Return a thread ID as it is: a str of 1 to 512 UTF-8 bytes, without NUL and lone surrogates."""
    if type(value) is str and _is_plain_id(value):
        return value
    return _identifier(value, argument)


def check_owner(value: object, argument: str = "owner") -> str:
    """Return the owner of a lease as it is; the rules are those of a thread ID."""
    return check_thread_id(value, argument)


def _identifier(value: object, argument: str) -> str:
    size = len(check_text(value, argument).encode())
    if size == 0:
        raise InvalidInputError(argument, "must not be empty")
    if size > MAX_ID_BYTES:
        raise InvalidInputError(argument, f"has {size} UTF-8 bytes, at most {MAX_ID_BYTES} are allowed")
    return str(value)


def check_text(value: object, argument: str, *, max_bytes: int | None = None) -> str:
    """Return a str without NUL and lone surrogates, of at most `max_bytes` UTF-8 bytes."""
    if type(value) is not str:
        raise InvalidInputError(argument, f"must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidInputError(argument, "must not contain NUL")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(argument, "must not contain a lone surrogate") from None
    if max_bytes is not None and size > max_bytes:
        raise InvalidInputError(argument, f"has {size} UTF-8 bytes, at most {max_bytes} are allowed")
    return value


def check_metadata(metadata: object, argument: str = "metadata") -> Mapping[str, str]:
    """Return metadata as it is: str to str, keys to 128 and values to 1,024 UTF-8 bytes, no NUL, no lone surrogates."""
    if type(metadata) is not dict and not isinstance(metadata, Mapping):
        raise InvalidInputError(argument, f"must be a mapping of str to str, not {type(metadata).__name__}")
    for key, value in metadata.items():
        if not _is_plain(key, MAX_KEY_BYTES):
            check_text(key, f"{argument} key {shown(key)}", max_bytes=MAX_KEY_BYTES)
        if not _is_plain(value, MAX_VALUE_BYTES):
            check_text(value, f"{argument}[{shown(key)}]", max_bytes=MAX_VALUE_BYTES)
    return metadata


def _is_plain(value: object, max_bytes: int) -> bool:
    """Let pass what most texts are, quickly."""
    return type(value) is str and value.isascii() and len(value) <= max_bytes and "\0" not in value


@lru_cache(maxsize=1024)
def _is_plain_id(value: str) -> bool:
    """Let pass what most identifiers are: each comes again with every save of its thread."""
    return value != "" and _is_plain(value, MAX_ID_BYTES)


def check_int(value: object, argument: str, minimum: int, maximum: int | None = None) -> int:
    """Return an int within bounds; a bool is no int here."""
    if type(value) is not int:
        raise InvalidInputError(argument, f"must be an int, not {type(value).__name__}")
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
        raise InvalidInputError(argument, f"must be {bounds}, not {shown(value)}")
    return value


def check_limit(value: object, argument: str = "limit") -> int:
    """Return a limit: an int from 1 to 1,000."""
    return check_int(value, argument, 1, MAX_LIMIT)


def check_moment(value: Any, argument: str) -> int:
    """Return an aware datetime as microseconds since 1970 UTC."""
    if not isinstance(value, datetime):
        raise InvalidInputError(argument, f"must be a datetime, not {type(value).__name__}")
    if value.tzinfo is not UTC and value.utcoffset() is None:
        raise InvalidInputError(argument, "must be an aware datetime, for example datetime.now(timezone.utc)")
    return micros(value)


def check_ttl(value: object, argument: str = "ttl") -> int:
    """Return a time to live in microseconds: more than zero, at most ten years."""
    if not isinstance(value, timedelta):
        raise InvalidInputError(argument, f"must be a timedelta, not {type(value).__name__}")
    if not timedelta(0) < value <= MAX_TTL:
        raise InvalidInputError(argument, f"must be more than zero and at most {MAX_TTL.days} days, not {value}")
    return value // timedelta(microseconds=1)


def check_revision_text(text: object, argument: str = "text") -> tuple[int, bytes]:
    """Return the sequence and the write ID of a revision's text form."""
    import re

    found = re.fullmatch("(0|[1-9][0-9]{0,9})-([0-9a-f]{16})", text) if type(text) is str else None
    if found is None or int(found[1]) > MAX_SEQUENCE:
        raise InvalidInputError(argument, "is not the text of a revision, such as '4-9f86d081884c7d65'")
    return int(found[1]), bytes.fromhex(found[2])


def check_write_id(value: object, argument: str = "write_id") -> bytes:
    """Return a write ID: exactly 8 bytes."""
    if type(value) is not bytes or len(value) != 8:
        raise InvalidInputError(argument, "must be 8 bytes, for example os.urandom(8)")
    return value
