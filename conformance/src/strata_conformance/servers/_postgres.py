"""A PostgreSQL for tests."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from strata_conformance.servers._account import Account, unprivileged
from strata_conformance.servers._binaries import find_postgres, reachable
from strata_conformance.servers._database import Database
from strata_conformance.servers._errors import ServerFailedError
from strata_conformance.servers._postgres_client import PostgresClient, Rows
from strata_conformance.servers._server import Protocol, Server

__all__ = ["PostgresServer"]

_INITDB: Final = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
_FAST: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_DURABLE: Final = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


class PostgresServer(Server):
    """A PostgreSQL for tests; see `Server`.

        with PostgresServer() as server, server.fresh_database() as database:
            connection = psycopg.connect(database.url)

    It listens on TCP only, trusts everybody, and has no TLS where it comes from the wheel.  Run by root it works as the
    user ``postgres`` or ``nobody``.  An existing one is that in STRATA_TEST_POSTGRES_URL, as a superuser; databases
    and roles are made in it and dropped.
    """

    product = "PostgreSQL"
    variable = "STRATA_TEST_POSTGRES_URL"
    protocol: ClassVar[Protocol] = "postgres"
    _end_at_once = signal.SIGQUIT  # immediate shutdown: as a crash, but no process is left over
    _end = signal.SIGINT  # fast shutdown: does not wait for clients

    _programs: Path

    @property
    def url(self) -> str:
        """The URL of the database ``postgres``, as a superuser."""
        return self._existing or f"postgresql://postgres@{self.host}:{self.port}/postgres"

    def execute(self, statement: str, url: str | None = None) -> Rows:
        """Run a statement on a connection of its own and return its rows as text.

        Args:
            statement: One statement, or several that are one transaction.
            url: In which database; None is `url`.

        Raises:
            ServerFailedError: It was refused.
        """
        with PostgresClient(url or self.url) as client:
            return client.execute(statement)

    @contextmanager
    def fresh_database(self, template: str = "template1") -> Iterator[Database]:
        """Make a database of a random name, in tens of milliseconds, and drop it at the end with all that is in it.

        Args:
            template: The name of the database that it is a copy of.
        """
        name = f"strata_test_{uuid4().hex[:12]}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        database = Database(name, urlunsplit(urlsplit(self.url)._replace(path=f"/{name}")))
        try:
            yield database
        finally:
            self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            for role in database.roles:
                self.execute(f'DROP ROLE "{role}"')

    def _runs_as(self) -> Account:
        return unprivileged()

    def _reach(self) -> None:
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname or self.host, parts.port or 5432
        self.execute("SELECT 1")

    def _prepare(self) -> None:
        self._programs = reachable(find_postgres() / "initdb", self.folder, self._account).parent
        # The transaction logs are made with the data; nothing of that need survive a power cut, so it is not synced.
        made = subprocess.run(
            [self._programs / "initdb", "-D", self.folder / "data", *_INITDB],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self._environment(),
            **self._account.popen,
        )
        if made.returncode:
            message = f"initdb of {self._programs} failed: {made.stderr[-2000:]}"
            raise ServerFailedError(message)

    def _command(self) -> Sequence[str | Path]:
        settings = {
            "listen_addresses": self.host,
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            "timezone": "UTC",
            **(_DURABLE if self.durable else _FAST),
            **self.settings,
        }
        # After a crash this file names a process that is gone, and that may be another one by now.
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        return [self._programs / "postgres", "-D", self.folder / "data", *options]

    def _answers(self) -> bool:
        status = self.folder / "data" / "postmaster.pid"
        try:
            lines = status.read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"
