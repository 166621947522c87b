"""What a database holds of ours, and making it."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from strata_core.errors import ReadOnlyError, SchemaVersionError, StoreUnavailableError
from strata_postgres._address import Address
from strata_postgres._commit import text_array
from strata_postgres._errors import translate
from strata_postgres._schema import NAMES, STEPS, VERSION, quoted

__all__ = ["LOOK", "VERSION_OF", "check_server", "looked", "set_up"]

_OLDEST_SERVER: Final = 130000

LOOK: Final = """
SELECT current_setting('server_version_num')::integer,
       current_setting('server_encoding'),
       EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = %(schema)s),
       ARRAY(SELECT c.relname::text
             FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = %(schema)s AND c.relname = ANY (%(names)s::text[])
             ORDER BY c.relname)
"""
"""Says what there is without touching it, so that no privilege is needed."""
VERSION_OF: Final = "SELECT version FROM {s}.strata_version"


async def look(connection: AsyncConnection[tuple[Any, ...]], address: Address) -> tuple[int, bool]:
    """Return the version of the schema's tables, 0 for none, and whether the schema exists.  Changes nothing.

    Raises:
        SchemaVersionError: The tables are of a newer version, or somebody else's.
        StoreUnavailableError: The server is too old, or its database not in UTF-8.
    """
    schema = address.options.schema
    names = text_array(("strata_version", *NAMES))
    cursor = await connection.execute(LOOK, {"schema": schema, "names": names}, prepare=False)
    record = await cursor.fetchone()
    assert record is not None
    server, encoding, exists, found = record
    check_server(address, server, encoding)
    if "strata_version" not in found:
        if found:
            raise SchemaVersionError(
                f"{address}: the schema holds {', '.join(found)} of something else; give another one, with "
                "options=PostgresOptions(schema=...) or ?schema=... in the URL",
                found="unknown",
                supported=str(VERSION),
            )
        return 0, exists
    cursor = await connection.execute(VERSION_OF.replace("{s}", quoted(schema)), prepare=False)
    return looked(address, await cursor.fetchall()), exists


def check_server(address: Address, version: int, encoding: str) -> None:
    """Refuse a server that cannot hold what we store."""
    if version < _OLDEST_SERVER:
        raise StoreUnavailableError(f"{address}: PostgreSQL {version // 10000} is too old: 13 or newer is needed")
    if encoding != "UTF8":
        raise StoreUnavailableError(
            f"{address}: the database is in {encoding}, which cannot hold every text; make one with "
            "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )


def looked(address: Address, records: list[tuple[Any, ...]]) -> int:
    """Return the version that the records of `VERSION_OF` say, if it is one of ours."""
    version = int(records[0][0]) if len(records) == 1 else -1
    if version > VERSION:
        raise SchemaVersionError(
            f"{address}: the store has schema version {version}, and this release of strata-postgres knows up to "
            f"{VERSION}; upgrade strata-postgres",
            found=str(version),
            supported=str(VERSION),
        )
    if version < 1:
        raise SchemaVersionError(
            f"{address}: strata_version does not hold one version; restore it, or give another schema",
            found="unknown",
            supported=str(VERSION),
        )
    return version


async def set_up(connection: AsyncConnection[tuple[Any, ...]], address: Address) -> None:
    """Create or upgrade the tables in one transaction.  Idempotent; of many that run at once, one does it.

    Raises:
        SchemaVersionError: As `look` says.
        ReadOnlyError: The role may not create, or the database takes no writes.
    """
    schema = address.options.schema
    try:
        async with connection.transaction():
            # Held to the end of the transaction, so that PgBouncer may hand the connection on afterwards.
            await connection.execute(
                "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended(%s, 0))",
                (f"strata set-up {schema}",),
                prepare=False,
            )
            version, exists = await look(connection, address)
            if version == VERSION:
                return
            text = "SET LOCAL search_path = pg_catalog, pg_temp;"  # views keep the operators that are found now
            text += "" if exists else "CREATE SCHEMA {s};"
            text += "".join(f"{statement};" for step in STEPS[version:] for statement in step)
            text += "UPDATE {s}.strata_version SET version = " if version else "INSERT INTO {s}.strata_version SELECT "
            # Several statements without arguments: one round trip.
            await connection.execute(f"{text}{VERSION}".replace("{s}", quoted(schema)).encode(), prepare=False)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ReadOnlyError(
            f"{address}: the role may not set the store up ({address.scrubbed(error)}); let one that may create "
            f'tables in the schema do it once, then open with setup="never"'
        ) from address.cause(error)
    except psycopg.Error as error:
        raise translate(error, address, writing=True) from address.cause(error)
