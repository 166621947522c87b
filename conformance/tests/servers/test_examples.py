"""The README's examples with servers run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from strata_conformance.servers import Database, PostgresServer

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(CRASH,) = (block for block in BLOCKS if "PostgresServer(" in block)
(LOSS,) = (block for block in BLOCKS if "FaultProxy.before(" in block)


def lose_an_insert(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, pytest.raises(psycopg.OperationalError):
        connection.execute("INSERT INTO orders VALUES (%s)", (1,))


def test_what_the_readme_says_of_crashes_and_lost_answers(
    postgres_server: PostgresServer, postgres_database: Database
) -> None:
    names: dict[str, Any] = {"lose_an_insert": lose_an_insert}
    exec(CRASH, names)
    exec(LOSS.replace("...", "lose_an_insert(proxy.url(postgres_database.url))"), names)
    names["test_what_was_committed_outlives_a_crash"]()
    postgres_database.execute("CREATE TABLE orders (id int)")
    names["test_an_answer_that_is_lost"](postgres_server, postgres_database)

    assert [("1",)] == postgres_database.execute("SELECT id FROM orders")
