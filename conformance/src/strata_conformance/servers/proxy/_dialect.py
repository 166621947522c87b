"""How a proxy finds requests and replies in what passes; here for a protocol that it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import attrs

__all__ = ["Dialect", "Piece", "RawDialect"]


@attrs.frozen
class Piece:
    """One message on its way.

    Attributes:
        content: The bytes.
        kind: What the protocol calls it.
        ends: Whether a request or a reply ends with it.
        is_part: Whether it is kept back until its request is whole, so that a fault strikes the whole of it.
        asks: Whether the server is to answer it at once, so that it is not kept back, nor what came before it.
        is_login: Whether it is part of the log-in, which faults and counts pass over.
        text: The statement in it.
    """

    content: bytes
    kind: str
    ends: bool = False
    is_part: bool = False
    asks: bool = False
    is_login: bool = False
    text: str = ""


class Dialect(Protocol):
    """Reads one connection; both directions share what it knows."""

    def from_client(self, data: bytes) -> Iterator[Piece]:
        """Take what came from the client; give the messages that are whole by now."""

    def from_server(self, data: bytes) -> Iterator[Piece]:
        """Take what came from the server; give the messages that are whole by now."""


class RawDialect:
    """Takes everything that comes in one piece for one message."""

    def from_client(self, data: bytes) -> Iterator[Piece]:
        yield Piece(data, "data", ends=True)

    def from_server(self, data: bytes) -> Iterator[Piece]:
        yield Piece(data, "data", ends=True)
