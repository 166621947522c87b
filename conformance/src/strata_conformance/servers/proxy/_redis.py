"""Commands and replies of Redis and Valkey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from strata_conformance.servers._resp import parse
from strata_conformance.servers.proxy._dialect import Piece

__all__ = ["RedisDialect"]

_LOGIN: Final = frozenset({"HELLO", "AUTH", "CLIENT", "SELECT", "READONLY"})
"""What client libraries send by themselves when they connect."""


class RedisDialect:
    """Every command is a request and has one reply; what a server pushes is none.  Subscriptions are not followed."""

    def __init__(self) -> None:
        self._up = bytearray()
        self._down = bytearray()

    def from_client(self, data: bytes) -> Iterator[Piece]:
        self._up += data
        while self._up:
            if self._up[:1] == b"*":
                found = parse(self._up)
                if found is None:
                    return
                (name, *_), end = found
            else:
                end = self._up.find(b"\r\n") + 2
                if end < 2:
                    return
                name = bytes(self._up[:end]).split()[0]
            content = bytes(self._up[:end])
            del self._up[:end]
            kind = name.decode(errors="replace").upper()
            yield Piece(content, kind, ends=True, is_login=kind in _LOGIN, text=kind)

    def from_server(self, data: bytes) -> Iterator[Piece]:
        self._down += data
        while self._down:
            found = parse(self._down)
            if found is None:
                return
            end = found[1]
            content = bytes(self._down[:end])
            del self._down[:end]
            yield Piece(content, "reply", ends=content[:1] != b">")
