"""Messages of PostgreSQL's protocol, version 3."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from strata_conformance.servers.proxy._dialect import Piece

__all__ = ["PostgresDialect"]

_KINDS: Final = {
    b"B": "Bind", b"C": "Close", b"D": "Describe", b"E": "Execute", b"F": "FunctionCall", b"H": "Flush", b"P": "Parse",
    b"Q": "Query", b"S": "Sync", b"X": "Terminate", b"c": "CopyDone", b"d": "CopyData", b"f": "CopyFail",
    b"p": "Password",
}  # fmt: skip
_PARTS: Final = frozenset({"Parse", "Bind", "Describe", "Execute", "Close", "Flush"})
_ENDS: Final = frozenset({"Query", "Sync", "FunctionCall"})
_CANCEL: Final = 80_877_102
_ENCRYPT: Final = frozenset({80_877_103, 80_877_104})


class PostgresDialect:
    """A request ends with ``Query`` or ``Sync``, a reply with ``ReadyForQuery``.

    What is encrypted passes unread.
    """

    def __init__(self) -> None:
        self._up = bytearray()
        self._down = bytearray()
        self._statements: dict[bytes, str] = {}
        self._has_begun = False
        self._is_logged_in = False
        self._asked_to_encrypt = False
        self._is_encrypted = False

    def from_client(self, data: bytes) -> Iterator[Piece]:
        if self._is_encrypted:
            yield Piece(data, "encrypted", is_login=True)
            return
        self._up += data
        while True:
            head = 1 if self._has_begun else 0
            if len(self._up) < head + 4:
                return
            size = head + struct.unpack_from("!i", self._up, head)[0]
            if len(self._up) < size:
                return
            content = bytes(self._up[:size])
            del self._up[:size]
            yield self._message(content) if self._has_begun else self._beginning(content)

    def from_server(self, data: bytes) -> Iterator[Piece]:
        if self._is_encrypted:
            yield Piece(data, "encrypted")
            return
        self._down += data
        if self._asked_to_encrypt and self._down:
            self._asked_to_encrypt = False
            self._is_encrypted = self._down[:1] != b"N"
            yield Piece(bytes(self._down[:1]), "EncryptionResponse", ends=True)
            del self._down[:1]
        while len(self._down) >= 5:
            size = 1 + struct.unpack_from("!i", self._down, 1)[0]
            if len(self._down) < size:
                return
            content = bytes(self._down[:size])
            del self._down[:size]
            is_ready = content[:1] == b"Z"
            self._is_logged_in |= is_ready
            kind = {b"Z": "ReadyForQuery", b"G": "CopyInResponse"}.get(content[:1], "reply")
            yield Piece(content, kind, ends=is_ready)

    def _beginning(self, content: bytes) -> Piece:
        (code,) = struct.unpack_from("!i", content, 4)
        if code == _CANCEL:
            return Piece(content, "CancelRequest", is_login=True)
        if code in _ENCRYPT:
            self._asked_to_encrypt = True
            return Piece(content, "EncryptionRequest", ends=True, is_login=True)
        self._has_begun = True
        return Piece(content, "Startup", ends=True, is_login=True)

    def _message(self, content: bytes) -> Piece:
        kind = _KINDS.get(content[:1], "?")
        if not self._is_logged_in:
            return Piece(content, kind, is_login=True)
        return Piece(
            content,
            kind,
            ends=kind in _ENDS,
            is_part=kind in _PARTS,
            asks=kind == "Flush",
            text=self._text(kind, content[5:]),
        )

    def _text(self, kind: str, body: bytes) -> str:
        if kind == "Query":
            return body.rstrip(b"\0").decode(errors="replace")
        if kind == "Parse":
            name, statement = body.split(b"\0", 2)[:2]
            self._statements[name] = statement.decode(errors="replace")
        elif kind == "Bind":
            name = body.split(b"\0", 2)[1]
            return self._statements.get(name, "")
        return ""
