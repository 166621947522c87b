"""The URL of a database: what of it the driver gets, and how it is shown."""

from __future__ import annotations

import re
from urllib.parse import unquote

import attrs

from strata_core.errors import InvalidInputError
from strata_core.urls import redact, scheme_of, scrub
from strata_postgres._options import PostgresOptions, check_schema

__all__ = ["Address"]


@attrs.frozen
class Address:
    """Where a store is.

    Attributes:
        url: As it was given, secrets and all; never shown.
        conninfo: What the driver connects with: the URL without what is ours.
        options: The options, with the schema that the URL may name.
    """

    url: str = attrs.field(repr=False)
    conninfo: str = attrs.field(repr=False)
    options: PostgresOptions

    @classmethod
    def of(cls, url: object, options: PostgresOptions) -> Address:
        """Return the address that a URL names.

        Raises:
            InvalidInputError: It is no URL of a PostgreSQL database, as libpq takes them, or names another schema than
                the options do.
        """
        if type(url) is not str or scheme_of(url) not in {"postgres", "postgresql"}:
            shown = redact(url) if isinstance(url, str) else type(url).__name__
            raise InvalidInputError("url", f"must be a URL such as postgresql://user@host:5432/database, not {shown!r}")
        place, question, query = url.partition("?")
        if place.count("@") > 1:  # the driver would take a part of the password for the host, and show it
            raise InvalidInputError(
                "url", f"{redact(url)!r} has more than one '@': write those of user and password as %40"
            )
        kept: list[str] = []
        schemas: list[str] = []
        for pair in query.split("&") if question else ():
            name, _, value = pair.partition("=")
            (schemas if name == "schema" else kept).append(unquote(value) if name == "schema" else pair)
        for schema in schemas:
            check_schema(schema, "url parameter schema")
            if options.schema not in (schema, PostgresOptions().schema):
                raise InvalidInputError("url parameter schema", f"is {schema!r}, and options.schema {options.schema!r}")
            options = attrs.evolve(options, schema=schema)
        rest = place.partition(":")[2]  # libpq knows the scheme in lower case only
        address = cls(url, f"postgresql:{rest}" + ("?" + "&".join(kept) if kept else ""), options)
        address._check()
        return address

    def _check(self) -> None:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict

        try:
            conninfo_to_dict(self.conninfo)
        except Error as error:  # its message may quote a part of the password, and so may that of a cause
            person = self.conninfo.partition("?")[0].rpartition("@")[0]
            quotes_it = any(quoted in person for quoted in re.findall(r'"([^"]+)"', str(error)))
            why = "" if quotes_it else f": {self.scrubbed(error)}"
            raise InvalidInputError(
                "url",
                f"{redact(self.url)!r} is no URL of a PostgreSQL database{why}; write special characters of user and "
                "password percent-encoded",
            ) from None

    def scrubbed(self, error: Exception) -> str:
        """Return the message of a driver's error on one line, without secrets of the URL, and without state.

        Of what the server says, only the message proper: details may quote the row at hand.
        """
        said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        return scrub(" ".join(said.split()), self.url)

    def cause(self, error: Exception) -> Exception | None:
        """Return the error as the cause of another, or None if its text, which a traceback prints, tells too much."""
        return error if self.scrubbed(error) == " ".join(str(error).split()) else None

    def __str__(self) -> str:
        return f"{redact(self.url)} (schema {self.options.schema!r})"
