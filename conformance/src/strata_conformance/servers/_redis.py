"""A Valkey or Redis for tests."""

from __future__ import annotations

import socket
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote, urlsplit

from strata_conformance.servers._binaries import find_redis, find_valkey
from strata_conformance.servers._errors import ServerFailedError
from strata_conformance.servers._ports import free_port
from strata_conformance.servers._resp import ReplyError, encode, parse
from strata_conformance.servers._server import Protocol, Server

__all__ = ["KeyValueServer", "RedisServer", "ValkeyServer"]

_FAST: Final = {"save": "", "appendonly": "yes", "appendfsync": "no"}
_DURABLE: Final = {"save": "", "appendonly": "yes", "appendfsync": "always"}


class KeyValueServer(Server):
    """What `RedisServer` and `ValkeyServer` have in common; see `Server`."""

    protocol: ClassVar[Protocol] = "redis"
    _program: Path

    @property
    def url(self) -> str:
        """The URL of its first database, with the password if the setting ``requirepass`` is given."""
        password = self.settings.get("requirepass")
        login = "" if password is None else f":{quote(str(password), safe='')}@"
        return self._existing or f"redis://{login}{self.host}:{self.port}/0"

    def command(self, *arguments: str | int | bytes) -> Any:
        """Send a command on a connection of its own and return the answer: bytes, int, list or None.

        Raises:
            ServerFailedError: It was refused.
            OSError: Nothing answers.
        """
        parts = urlsplit(self.url)
        login = [unquote(part) for part in (parts.username, parts.password) if part]
        commands: list[Sequence[str | int | bytes]] = [("AUTH", *login)] if login else []
        if (database := parts.path.lstrip("/") or "0") != "0":
            commands.append(("SELECT", database))
        commands.append(arguments)
        with socket.create_connection((self.host, self.port), timeout=60) as connection:
            connection.sendall(b"".join(encode(*command) for command in commands))
            answers = _receive(connection, len(commands))
        for answer in answers:
            if isinstance(answer, ReplyError):
                message = f"{self.product}: {answer}"
                raise ServerFailedError(message)
        return answers[-1]

    def flush(self) -> None:
        """Remove everything; in an existing server, from the database that its URL names."""
        self.command("FLUSHALL" if self.is_own else "FLUSHDB")

    @classmethod
    @abstractmethod
    def find(cls) -> Path:
        """Return the program.

        Raises:
            MissingServerError: It is not installed.
        """

    def _reach(self) -> None:
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname or self.host, parts.port or 6379
        self.command("PING")

    def _prepare(self) -> None:
        self._program = self.find()

    def _free_port(self) -> int:
        return free_port(with_bus="cluster-enabled" in self.settings)

    def _command(self) -> Sequence[str | Path]:
        settings = {
            "bind": self.host,
            "port": self.port,
            "dir": self.folder,
            "daemonize": "no",
            **(_DURABLE if self.durable else _FAST),
            **self.settings,
        }
        return [self._program, *(str(part) for name, value in settings.items() for part in (f"--{name}", value))]

    def _answers(self) -> bool:
        try:
            facts = self.command("INFO", "server")
            progress = self.command("INFO", "persistence")
        except (OSError, ServerFailedError):  # not there yet
            return False
        # It tells both while it still loads its data and refuses everything else.
        return f"process_id:{self.pid}\r\n".encode() in facts and b"loading:1" not in progress


class ValkeyServer(KeyValueServer):
    """A Valkey for tests; see `Server`.

        with ValkeyServer() as server:
            client = redis.Redis.from_url(server.url)

    An existing one is that in STRATA_TEST_VALKEY_URL, whose database the tests may empty.
    """

    product = "Valkey"
    variable = "STRATA_TEST_VALKEY_URL"

    @classmethod
    def find(cls) -> Path:
        return find_valkey()


class RedisServer(KeyValueServer):
    """A Redis for tests; see `Server`.

        with RedisServer() as server:
            client = redis.Redis.from_url(server.url)

    An existing one is that in STRATA_TEST_REDIS_URL, whose database the tests may empty.
    """

    product = "Redis"
    variable = "STRATA_TEST_REDIS_URL"

    @classmethod
    def find(cls) -> Path:
        return find_redis()


def _receive(connection: socket.socket, count: int) -> list[Any]:
    data, at = bytearray(), 0
    answers: list[Any] = []
    while len(answers) < count:
        found = parse(data, at)
        if found is not None:
            answers.append(found[0])
            at = found[1]
        elif part := connection.recv(1 << 16):
            data += part
        else:
            message = "the connection was closed"
            raise ConnectionError(message)
    return answers
