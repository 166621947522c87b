"""What a user can choose."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import attrs

from strata_core.errors import InvalidInputError

__all__ = ["RedisOptions", "check_prefix"]

_UNFIT: Final = re.compile(r"[{}\s\x00-\x1f\x7f]")
_LONGEST_PREFIX: Final = 256
_MOST_BUCKETS: Final = 1024
_MOST_CONNECTIONS: Final = 10_000
_MOST_REPLICAS: Final = 1_000
_LONGEST_WAIT: Final = timedelta(hours=1)
_LONGEST_LIFE: Final = timedelta(days=36_500)


def check_prefix(value: object, argument: str = "prefix") -> str:
    """Return the prefix of a store's keys.

    Raises:
        InvalidInputError: It is empty, too long, or has braces, white space or control characters.
    """
    if type(value) is not str or not value or _UNFIT.search(value) is not None:
        raise InvalidInputError(
            argument, "must be a str of at least one character, without braces, white space and control characters"
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(argument, "must not contain a lone surrogate") from None
    if size > _LONGEST_PREFIX:
        raise InvalidInputError(argument, f"has {size} UTF-8 bytes, at most {_LONGEST_PREFIX} are allowed")
    return value


def _prefix(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    check_prefix(value, attribute.name)


def _count(most: int, least: int = 1) -> Callable[[object, attrs.Attribute[Any], Any], None]:
    def check(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or not least <= value <= most:
            raise InvalidInputError(attribute.name, f"must be an int from {least} to {most}, not {value!r}")

    return check


def _wait(_: object, attribute: attrs.Attribute[timedelta], value: object) -> None:
    if not isinstance(value, timedelta) or not timedelta(0) < value <= _LONGEST_WAIT:
        raise InvalidInputError(
            attribute.name, f"must be a timedelta of more than 0 and at most one hour, not {value!r}"
        )


def _life(_: object, attribute: attrs.Attribute[timedelta], value: object) -> None:
    if value is None:
        return
    if not isinstance(value, timedelta) or not timedelta(milliseconds=1) <= value <= _LONGEST_LIFE:
        raise InvalidInputError(
            attribute.name,
            f"must be None or a timedelta from one millisecond to {_LONGEST_LIFE.days} days, not {value!r}",
        )


def _text(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidInputError(attribute.name, "must be None or a str that is not empty")


@attrs.frozen
class RedisOptions:
    """The options of `RedisBackend`.

    Attributes:
        prefix: What the keys of this store begin with, in braces; stores with different prefixes never touch each
            other's keys.  1 to 256 UTF-8 bytes, without braces and white space.  The URL may give it instead.
        buckets: Over how many hash slots the threads of a new store are spread, from 1 to 1,024.  Kept in the store, so
            an existing one is opened with the number it has; another one asked for is refused.  None is 16 for a new
            store and whatever an existing one has.
        pool_size: At most this many connections to each server; whoever needs one more waits.
        connect_timeout: How long it may take to connect.
        timeout: How long a server may take to answer, and a connection of the pool to become free.
        replicas: By how many replicas of its server a write must have been received before it counts as done, by
            ``WAIT``.  Where fewer have it after half of `timeout`, the write fails as `StoreUnavailableError` with
            ``maybe_written``: it stands on the master.  0 waits for none.
        finished_thread_ttl: How long a thread lives after a save that leaves it completed or ended; any other save of
            the thread clears that.  None is for ever.  Cannot be used with an external blob store.
        ca_file: Certificates to trust with ``rediss://``; None is the system's.
        certificate_file: The client's own certificate, for servers that ask for one.
        key_file: The key of that certificate.
        sentinel_username: Who to be to the Sentinels, where they ask.
        sentinel_password: The password for the Sentinels; that of the URL is for the servers themselves.
    """

    prefix: str = attrs.field(default="strata", validator=_prefix)
    buckets: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count(_MOST_BUCKETS)))
    pool_size: int = attrs.field(default=8, validator=_count(_MOST_CONNECTIONS))
    connect_timeout: timedelta = attrs.field(default=timedelta(seconds=5), validator=_wait)
    timeout: timedelta = attrs.field(default=timedelta(seconds=10), validator=_wait)
    replicas: int = attrs.field(default=0, validator=_count(_MOST_REPLICAS, least=0))
    finished_thread_ttl: timedelta | None = attrs.field(default=None, validator=_life)
    ca_file: str | None = attrs.field(default=None, validator=_text)
    certificate_file: str | None = attrs.field(default=None, validator=_text)
    key_file: str | None = attrs.field(default=None, validator=_text)
    sentinel_username: str | None = attrs.field(default=None, validator=_text)
    sentinel_password: str | None = attrs.field(default=None, validator=_text, repr=False)
