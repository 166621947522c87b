"""A PgBouncer in front of a test's PostgreSQL."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from strata_conformance.servers._account import Account, unprivileged
from strata_conformance.servers._binaries import find_pgbouncer
from strata_conformance.servers._errors import ServerFailedError
from strata_conformance.servers._postgres import PostgresServer
from strata_conformance.servers._postgres_client import PostgresClient
from strata_conformance.servers._server import Protocol, Server

__all__ = ["PgBouncer"]


class PgBouncer(Server):
    """A PgBouncer in transaction mode in front of a PostgreSQL; see `Server`.

        with PostgresServer() as server, server.fresh_database() as database, PgBouncer(server) as bouncer:
            connection = psycopg.connect(bouncer.in_front_of(database.url))

    No wheel has PgBouncer: it is found on PATH, or where the variable STRATA_TEST_PGBOUNCER says.

    Args:
        server: What it is in front of.
        pool_size: How many connections to a database it shares among its clients.
        settings: More of its settings; the pool mode too.
    """

    product = "PgBouncer"
    protocol: ClassVar[Protocol] = "postgres"
    _end = signal.SIGINT

    def __init__(
        self, server: PostgresServer, *, pool_size: int = 2, settings: Mapping[str, str | int] | None = None
    ) -> None:
        super().__init__(own=True, settings=settings)
        self._behind: Final = server
        self._pool_size: Final = pool_size
        self._program = Path()

    @property
    def url(self) -> str:
        """The URL of the database ``postgres`` through it."""
        return self.in_front_of(self._behind.url)

    def in_front_of(self, url: str) -> str:
        """Return a URL of the server with this PgBouncer in the place of the server."""
        parts = urlsplit(url)
        login, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{login}{at}{self.host}:{self.port}"))

    def _runs_as(self) -> Account:
        return unprivileged()

    def _environment(self) -> dict[str, str]:
        environment = super()._environment()
        # A package that was only unpacked has its libraries in the same tree.
        beside = [str(path) for path in (self._program.parents[1] / "lib").glob("*-linux-*") if path.is_dir()]
        found = [*beside, os.environ.get("LD_LIBRARY_PATH", "")]
        return environment | {"LD_LIBRARY_PATH": ":".join(filter(None, found))}

    def _prepare(self) -> None:
        self._program = find_pgbouncer().resolve()

    def _command(self) -> Sequence[str | Path]:
        behind = urlsplit(self._behind.url)
        user, password = unquote(behind.username or "postgres"), unquote(behind.password or "")
        settings = {
            "listen_addr": self.host,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": self.folder / "users",
            "pool_mode": "transaction",
            "default_pool_size": self._pool_size,
            "max_client_conn": 500,
            "ignore_startup_parameters": "extra_float_digits",
            **self.settings,
        }
        (self.folder / "users").write_text(f'"{user}" "{password}"\n')
        lines = [f"{name} = {value}" for name, value in settings.items()]
        target = f"* = host={self._behind.host} port={self._behind.port}"
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text("\n".join(["[databases]", target, "[pgbouncer]", *lines, ""]))
        self._account.own(self.folder)
        return [self._program, configuration]

    def _answers(self) -> bool:
        try:
            with PostgresClient(self.url) as client:
                client.execute("SELECT 1")
        except (OSError, ServerFailedError):
            return False
        return True
