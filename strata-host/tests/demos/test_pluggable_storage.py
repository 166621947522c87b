"""Demo 12: one scenario comes out the same on memory, SQLite, Postgres and Redis."""

from __future__ import annotations

import pytest

from strata_conformance.servers.fixtures import (  # noqa: F401  # fixtures are known by their names
    postgres_database,
    postgres_server,
    valkey_server,
)
from strata_core.store import RowStore


@pytest.fixture
def pluggable(demo, monkeypatch):
    for name in ("STRATA_DEMO_POSTGRES", "STRATA_DEMO_REDIS"):
        monkeypatch.delenv(name, raising=False)
    return demo("12-pluggable-storage")


def test_its_readme_says_what_it_prints_where_no_server_is_named(pluggable):
    assert pluggable.readme("text") == pluggable.call()


def test_it_plays_on_servers_that_the_environment_names(pluggable, postgres_database, valkey_server, monkeypatch):  # noqa: F811
    monkeypatch.setenv("STRATA_DEMO_POSTGRES", postgres_database.url)
    monkeypatch.setenv("STRATA_DEMO_REDIS", valkey_server.url)

    shown = pluggable.call()

    assert ["memory", "SQLite", "Postgres", "Redis"] == [
        line.strip().removesuffix(": as above") for line in shown.splitlines() if line.endswith(": as above")
    ]
    assert "not played" not in shown


def test_it_plays_on_one_more_store(pluggable, shelf):
    assert "   the store of --storage: as above\n" in pluggable.call("--storage", shelf.url)


def test_it_fails_when_a_server_does_not_answer_and_shows_no_password(pluggable, capsys):
    shown = pluggable.call("--redis", "redis://:secret@127.0.0.1:1/0", fails="The demo failed on Redis: Store")

    assert "SQLite: as above" in shown
    assert "secret" not in shown + "".join(capsys.readouterr())


def test_it_fails_when_one_store_answers_differently(pluggable, monkeypatch):
    monkeypatch.setattr(RowStore, "save_if_latest", lambda store, checkpoint, _: store.save(checkpoint))

    pluggable.call(fails="The demo failed on memory: 12 lines; expected: 13")
