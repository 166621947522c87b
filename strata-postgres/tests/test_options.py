"""What a user can choose, and what is refused before anything is opened."""

from datetime import timedelta
from typing import Any

import pytest

from strata_core.errors import InvalidInputError
from strata_postgres import PostgresBackend, PostgresOptions


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("schema", value)
            for value in ("", "a b", 'a"b', "a-b", "1a", "pg_strata", "a" * 64, "ä", None, b"a", "a\n")
        ),
        *(("min_connections", value) for value in (-1, 1.0, True, "2", 1001)),
        *(("max_connections", value) for value in (0, 1001, None)),
        *(
            (name, value)
            for name in ("connect_timeout", "pool_timeout", "command_timeout")
            for value in (timedelta(0), timedelta(hours=1, seconds=1), 5, None)
        ),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PostgresOptions(**{name: value})

    assert name == caught.value.argument


def test_fewer_connections_at_most_than_at_least_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_connections: is 2, below min_connections, which is 3"):
        PostgresOptions(min_connections=3, max_connections=2)


def test_options_are_frozen_and_have_defaults() -> None:
    options = PostgresOptions()

    assert ("public", 1, 10) == (options.schema, options.min_connections, options.max_connections)
    with pytest.raises(AttributeError):
        options.schema = "other"  # type: ignore[misc]


def schema_of(url: str, **options: Any) -> str:
    return PostgresBackend(url, options=PostgresOptions(**options))._address.options.schema


def test_the_schema_may_stand_in_the_url_or_in_the_options() -> None:
    assert "public" == schema_of("postgres://h/db")
    assert "strata" == schema_of("postgres://h/db?schema=strata")
    assert "strata" == schema_of("postgres://h/db", schema="strata")
    assert "strata" == schema_of("postgres://h/db?schema=strata", schema="strata")
    assert "strata" == schema_of("postgres://h/db?connect_timeout=3&schema=str%61ta&application_name=x")


def test_two_schemas_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"schema: is 'a', and options\.schema 'b'"):
        schema_of("postgres://h/db?schema=a", schema="b")


def test_the_driver_gets_the_url_without_the_schema() -> None:
    address = PostgresBackend("postgres://h/db?connect_timeout=3&schema=a&application_name=x%20y")._address

    assert "postgresql://h/db?connect_timeout=3&application_name=x%20y" == address.conninfo
    assert "postgresql://h/db" == PostgresBackend("postgres://h/db?schema=a")._address.conninfo
