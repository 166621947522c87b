"""A database of a test, and roles that may do less than everything."""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from strata_conformance.servers._postgres_client import PostgresClient, Rows

__all__ = ["Database"]

_SCHEMAS: Final = (
    "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
)
_READ: Final = "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};"
_WRITE: Final = (
    "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};"
    "GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};"
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};"
)


class Database:
    """A database that belongs to one test.

    Attributes:
        name: Its name.
        url: Where a client connects to it, as a superuser.
        roles: The roles that were made for it; they are dropped with it.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name: Final = name
        self.url: Final = url
        self.roles: Final[list[str]] = []

    def execute(self, statement: str) -> Rows:
        """Run a statement on a connection of its own, as a superuser, and return its rows as text.

        Args:
            statement: One statement, or several that are one transaction.

        Raises:
            ServerFailedError: It was refused.
        """
        with PostgresClient(self.url) as client:
            return client.execute(statement)

    def reader(self) -> str:
        """Return the URL of a new role that may read what there is now, and nothing else."""
        return self._role(_READ)

    def writer(self) -> str:
        """Return the URL of a new role that may read and change what is in the tables there are, and create none."""
        return self._role(_READ + _WRITE)

    def _role(self, grants: str) -> str:
        role, password = f"{self.name}_{len(self.roles)}", secrets.token_urlsafe(12)
        statements = [
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",  # as it is from PostgreSQL 15 on
            f'REVOKE TEMPORARY ON DATABASE "{self.name}" FROM PUBLIC;',
            f"CREATE ROLE \"{role}\" LOGIN PASSWORD '{password}';",
        ]
        for (schema,) in self.execute(_SCHEMAS):
            statements.append(grants.format(schema=schema, role=f'"{role}"'))
        self.execute("".join(statements))
        self.roles.append(role)
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=f"{role}:{password}@{parts.hostname}:{parts.port or 5432}"))

    def __repr__(self) -> str:
        return f"<Database {self.name}>"
