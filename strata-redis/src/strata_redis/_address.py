"""What a URL says: which servers, how to reach them, and who to be there."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl, unquote

import attrs

from strata_core.errors import InvalidInputError
from strata_core.urls import redact, scheme_of
from strata_redis._options import check_prefix

__all__ = ["Address", "Mode", "Target"]

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:,/?#@]+)(?::(\d{1,5}))?")
_FLAGS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_REDIS_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379


class Mode(StrEnum):
    """Who is behind the addresses."""

    SINGLE = "single"
    """One server."""
    CLUSTER = "cluster"
    """Some nodes of a cluster, which know the others."""
    SENTINEL = "sentinel"
    """Sentinels, who know which server is the master."""


@attrs.frozen
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class Target:
    """A store's URL, taken apart.

    Attributes:
        mode: Who is behind `addresses`.
        addresses: One server; or several nodes or Sentinels, any of which will do.
        database: The number of the database; 0 in a cluster.
        username: Who to be; None for the default user.
        password: Never shown.
        tls: Whether the connection is encrypted.
        master: The name by which the Sentinels know the master.
        prefix: Of the keys; None leaves it to the options.
        shown: The URL without secrets, for messages.
    """

    mode: Mode
    addresses: tuple[Address, ...]
    database: int
    username: str | None
    password: str | None = attrs.field(repr=False)
    tls: bool
    master: str
    prefix: str | None
    shown: str

    @classmethod
    def parse(cls, url: str) -> Target:
        """Take a URL apart.

        Raises:
            InvalidInputError: It names no server, or says something that nobody understands.
        """
        shown = redact(url)
        scheme = scheme_of(url)
        rest = url.partition(":")[2]
        if scheme not in {"redis", "rediss"} or not rest.startswith("//"):
            raise InvalidInputError("url", f"{shown!r} must begin with redis:// or rediss://")
        if "#" in rest:
            raise InvalidInputError("url", f"{shown!r} has a fragment; write %23 for '#' in a password")
        rest, _, query = rest[2:].partition("?")
        authority, _, path = rest.partition("/")
        userinfo, at, hosts = authority.rpartition("@")
        parameters = _parameters(query, shown)
        master = parameters.get("sentinel", "")
        is_cluster = _flag(parameters.get("cluster", "false"), "cluster", shown)
        if "sentinel" in parameters and (not master or is_cluster):
            raise InvalidInputError("url", f"{shown!r}: sentinel= must name a master, and goes without cluster=true")
        mode = Mode.CLUSTER if is_cluster else Mode.SENTINEL if master else Mode.SINGLE
        addresses = _addresses(hosts, _SENTINEL_PORT if master else _REDIS_PORT, shown)
        if mode is Mode.SINGLE and len(addresses) > 1:
            raise InvalidInputError("url", f"{shown!r} names several servers: say ?cluster=true or ?sentinel=<master>")
        database = _database(path, parameters.get("db"), shown)
        if mode is Mode.CLUSTER and database:
            raise InvalidInputError("url", f"{shown!r} names database {database}: a cluster has only 0")
        username, _, password = userinfo.partition(":")
        prefix = parameters.get("prefix")
        return cls(
            mode,
            addresses,
            database,
            _unescaped(username, shown) or None,
            (_unescaped(password, shown) or None) if at else None,
            scheme == "rediss",
            master,
            None if prefix is None else check_prefix(prefix, "url: prefix"),
            shown,
        )


def _parameters(query: str, shown: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:
        raise InvalidInputError("url", f"{shown!r} has a query that is not name=value&name=value") from None
    found = dict(pairs)
    if len(found) != len(pairs) or found.keys() - {"cluster", "sentinel", "prefix", "db"}:
        raise InvalidInputError(
            "url",
            f"{shown!r}: the query may say cluster, sentinel, prefix and db, each once; all else is given to "
            "open_store as options=RedisOptions(...)",
        )
    return found


def _flag(text: str, name: str, shown: str) -> bool:
    if text.lower() not in _FLAGS:
        raise InvalidInputError("url", f"{shown!r}: {name}= must be true or false")
    return _FLAGS[text.lower()]


def _addresses(hosts: str, port: int, shown: str) -> tuple[Address, ...]:
    addresses = []
    for part in hosts.split(",") if hosts else ["localhost"]:
        found = _HOST.fullmatch(part)
        if found is None or int(found[2] or port) > 65_535:
            raise InvalidInputError("url", f"{shown!r} names a host or port that is none")
        addresses.append(Address(unquote(found[1].strip("[]")), int(found[2] or port)))
    return tuple(addresses)


def _database(path: str, parameter: str | None, shown: str) -> int:
    texts = {text for text in (path.strip("/"), parameter) if text}
    if len(texts) > 1 or not all(text.isdecimal() and text.isascii() and len(text) < 10 for text in texts):
        raise InvalidInputError(
            "url", f"{shown!r} must name one database by its number, as in redis://localhost:6379/0"
        )
    return int(texts.pop()) if texts else 0


def _unescaped(text: str, shown: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInputError("url", f"{shown!r} has an escape that is not UTF-8") from None
