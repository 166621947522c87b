"""What is known of a store as a whole: its format, and how many buckets it has."""

from __future__ import annotations

import logging
from typing import Any, Final

from strata_core.errors import InvalidInputError, SchemaVersionError, StoreUnavailableError
from strata_redis._calls import SET_UP, Call
from strata_redis._errors import unavailable
from strata_redis._keys import BUCKETS, Keys, meta_tag
from strata_redis._options import RedisOptions
from strata_redis._server import Server

__all__ = ["FORMAT", "look", "not_set_up", "set_up"]

FORMAT: Final = 1
"""The format this release writes."""

_logger: Final = logging.getLogger("strata_redis")
_said: Final[set[tuple[str, str]]] = set()
"""What was said of which store: once a process is enough."""


async def look(server: Server, options: RedisOptions, where: str) -> Keys | None:
    """Return the keys of a store that somebody has set up; None for none.  Only reads.

    Raises:
        SchemaVersionError: The store is of a newer format.
        InvalidInputError: It has another number of buckets than was asked for.
    """
    tag = meta_tag(options.prefix)
    (answer,) = await server.read([Call(tag, (b"HMGET", tag, b"format", b"buckets"))])
    return _keys(answer, options, where)


async def set_up(server: Server, options: RedisOptions, where: str, *, create: bool) -> Keys | None:
    """Make sure that everything a commit does is allowed, and create a store if none is there and `create` says so.

    Any number of processes may do so at once; one of them creates it.
    """
    tag = meta_tag(options.prefix)
    new = (b"%d" % FORMAT, b"%d" % (BUCKETS if options.buckets is None else options.buckets)) if create else ()
    answer, memory, persistence = await server.run(
        [
            Call(tag, new, SET_UP, (tag, tag + b"scratch")),
            Call(tag, (b"INFO", b"memory")),
            Call(tag, (b"INFO", b"persistence")),
        ],
        writes=True,
    )
    keys = _keys(answer, options, where)
    _warn(memory, persistence, where)
    return keys


def not_set_up(where: str, prefix: str) -> SchemaVersionError:
    """Return the error of a call on a store that nobody has set up."""
    return SchemaVersionError(
        f"{where}: a store with the prefix {prefix!r} was never set up; call store.setup() once, or open it for "
        'writing with setup="auto"',
        found="none",
        supported=str(FORMAT),
    )


def _keys(answer: Any, options: RedisOptions, where: str) -> Keys | None:
    if isinstance(answer, Exception):
        raise unavailable(answer, where)
    found, buckets = answer
    if found is None and buckets is None:
        return None
    if found != b"%d" % FORMAT:
        name = "none" if found is None else found.decode(errors="replace")
        raise SchemaVersionError(
            f"{where}: the store with the prefix {options.prefix!r} has format {name!r}, and this release reads "
            f"{FORMAT}; upgrade strata-redis",
            found=name,
            supported=str(FORMAT),
        )
    if buckets is None or not buckets.isdigit() or not int(buckets):
        raise StoreUnavailableError(f"{where}: the store with the prefix {options.prefix!r} does not say its buckets")
    if options.buckets is not None and options.buckets != int(buckets):
        raise InvalidInputError(
            "buckets", f"is {options.buckets}, and the store with the prefix {options.prefix!r} has {int(buckets)}"
        )
    return Keys(options.prefix, int(buckets))


def _warn(memory: Any, persistence: Any, where: str) -> None:
    """Say what a server is set to that does not go with keeping threads."""
    limits, durability = _fields(memory), _fields(persistence)
    policy = limits.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys") and limits.get("maxmemory", "0") != "0":
        _say(
            where,
            f"drops keys when its memory is full (maxmemory-policy {policy}), and so loses threads: set noeviction",
        )
    if durability.get("aof_enabled") == "0":
        _say(where, "keeps no log (appendonly no), and so loses threads when it stops: set appendonly yes")


def _say(where: str, what: str) -> None:
    if (where, what) not in _said:
        _said.add((where, what))
        _logger.warning("%s %s", where, what)


def _fields(info: Any) -> dict[str, str]:
    if not isinstance(info, bytes):
        return {}  # this user may not ask
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}
