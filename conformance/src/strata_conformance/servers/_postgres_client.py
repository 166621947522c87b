"""A PostgreSQL client that is just enough to look after test databases: text in, text out, one statement at a time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import struct
from types import TracebackType
from typing import Final, Self, TypeAlias
from urllib.parse import unquote, urlsplit

from strata_conformance.servers._errors import ServerFailedError

__all__ = ["PostgresClient", "Rows"]

Rows: TypeAlias = list[tuple[str | None, ...]]
_VERSION: Final = 196_608  # 3.0


class PostgresClient:
    """One connection, for statements without parameters.

    Knows no TLS, and of the passwords those in clear, MD5 and SCRAM-SHA-256.

    Args:
        url: ``postgresql://user:password@host:port/database``.

    Raises:
        ServerFailedError: The server refuses.
        OSError: There is no server.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._user: Final = unquote(parts.username or "postgres")
        self._password: Final = unquote(parts.password or "")
        database = unquote(parts.path.lstrip("/")) or self._user
        self._socket = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 5432), timeout=60)
        self._file = self._socket.makefile("rb")
        try:
            options = b"".join(part.encode() + b"\0" for part in ("user", self._user, "database", database))
            self._send(b"", struct.pack("!i", _VERSION) + options + b"\0")
            self._log_in()
        except BaseException:
            self.close()
            raise

    def execute(self, statement: str) -> Rows:
        """Run a statement, or several, and return the rows of the last one that has rows.

        Raises:
            ServerFailedError: It was refused; the server's words and the SQLSTATE are in the text.
        """
        self._send(b"Q", statement.encode() + b"\0")
        return self._answer()

    def close(self) -> None:
        """Close the connection.  Closing again does nothing."""
        self._file.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _log_in(self) -> None:
        exchange = _Scram(self._password)
        while True:
            kind, body = self._receive()
            if kind == b"E":
                raise _refusal(body)
            (method,) = struct.unpack("!i", body[:4])
            if method == 0:
                break
            if method == 3:
                self._send(b"p", self._password.encode() + b"\0")
            elif method == 5:
                inner = hashlib.md5((self._password + self._user).encode()).hexdigest()  # noqa: S324  # the protocol's
                self._send(b"p", b"md5" + hashlib.md5(inner.encode() + body[4:]).hexdigest().encode() + b"\0")  # noqa: S324
            elif method == 10:
                first = exchange.first()
                self._send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
            elif method == 11:
                self._send(b"p", exchange.final(body[4:]))
            elif method != 12:
                message = f"the server wants to be convinced in a way (method {method}) that this client does not know"
                raise ServerFailedError(message)
        self._answer()

    def _answer(self) -> Rows:
        rows: Rows = []
        refusal: ServerFailedError | None = None
        while True:
            kind, body = self._receive()
            if kind == b"T":
                rows = []
            elif kind == b"D":
                rows.append(_row(body))
            elif kind == b"E":
                refusal = _refusal(body)
            elif kind == b"Z":
                if refusal is not None:
                    raise refusal
                return rows

    def _send(self, kind: bytes, body: bytes) -> None:
        self._socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def _receive(self) -> tuple[bytes, bytes]:
        head = self._file.read(5)
        if len(head) < 5:
            message = "PostgreSQL closed the connection"
            raise ServerFailedError(message)
        return head[:1], self._file.read(struct.unpack("!i", head[1:])[0] - 4)


class _Scram:
    """The client's half of SCRAM-SHA-256 (RFC 7677), without channel binding."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._bare = b"n=,r=" + base64.b64encode(os.urandom(18))

    def first(self) -> bytes:
        return b"n,," + self._bare

    def final(self, challenge: bytes) -> bytes:
        facts = dict(part.split(b"=", 1) for part in challenge.split(b","))
        salted = hashlib.pbkdf2_hmac("sha256", self._password, base64.b64decode(facts[b"s"]), int(facts[b"i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = b"c=biws,r=" + facts[b"r"]
        signed = b",".join((self._bare, challenge, without_proof))
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return without_proof + b",p=" + base64.b64encode(proof)


def _row(body: bytes) -> tuple[str | None, ...]:
    values: list[str | None] = []
    at = 2
    while at < len(body):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return tuple(values)


def _refusal(body: bytes) -> ServerFailedError:
    facts = {field[:1]: field[1:].decode(errors="replace") for field in body.split(b"\0") if field}
    return ServerFailedError(f"PostgreSQL: {facts.get(b'M', '?')} (SQLSTATE {facts.get(b'C', '?')})")
