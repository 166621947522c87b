"""What a user can choose about the database."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

import attrs

from strata_core.errors import InvalidInputError

__all__ = ["PostgresOptions", "check_schema"]

_LONGEST: Final = timedelta(hours=1)
_SCHEMA: Final = re.compile(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)


def check_schema(value: object, argument: str = "schema") -> str:
    """Return the name of a schema: a letter or underscore, then letters, digits and underscores, 63 in all.

    Raises:
        InvalidInputError: It is anything else, or begins with ``pg_``, which belongs to PostgreSQL.
    """
    if type(value) is not str or _SCHEMA.fullmatch(value) is None:
        raise InvalidInputError(
            argument,
            "must be 1 to 63 ASCII letters, digits and underscores, begin with none of the digits and not with 'pg_', "
            f"not {value!r}",
        )
    return value


def _schema(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    check_schema(value, attribute.name)


def _at_least(least: int) -> Any:
    def check(_: object, attribute: attrs.Attribute[int], value: object) -> None:
        if type(value) is not int or not least <= value <= 1000:
            raise InvalidInputError(attribute.name, f"must be an int from {least} to 1,000, not {value!r}")

    return check


def _timeout(_: object, attribute: attrs.Attribute[timedelta], value: object) -> None:
    if not isinstance(value, timedelta) or not timedelta(0) < value <= _LONGEST:
        raise InvalidInputError(attribute.name, f"must be a timedelta of more than zero to one hour, not {value!r}")


@attrs.frozen
class PostgresOptions:
    """The options of `PostgresBackend`.

    Attributes:
        schema: The schema that holds the tables; two stores in different schemas of one database never see each other.
            The URL may name it too, as ``?schema=strata``, which counts where this is left at its default.
        min_connections: How many connections are kept open, also when idle; 0 for none.
        max_connections: How many may be open at once; calls beyond them wait for one.  At least 1, and not below
            `min_connections`.
        connect_timeout: How long the making of a connection may take; rounded up to whole seconds.
        pool_timeout: How long a call waits for a free connection before it fails with `StoreUnavailableError`.
        command_timeout: How long a call waits for the server's answer before it gives the connection up and fails with
            `StoreUnavailableError`; for a write with `maybe_written`.
    """

    schema: str = attrs.field(default="public", validator=_schema)
    min_connections: int = attrs.field(default=1, validator=_at_least(0))
    max_connections: int = attrs.field(default=10, validator=_at_least(1))
    connect_timeout: timedelta = attrs.field(default=timedelta(seconds=10), validator=_timeout)
    pool_timeout: timedelta = attrs.field(default=timedelta(seconds=10), validator=_timeout)
    command_timeout: timedelta = attrs.field(default=timedelta(seconds=60), validator=_timeout)

    def __attrs_post_init__(self) -> None:
        if self.max_connections < self.min_connections:
            raise InvalidInputError(
                "max_connections", f"is {self.max_connections}, below min_connections, which is {self.min_connections}"
            )
