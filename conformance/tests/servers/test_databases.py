"""Databases of tests, roles that may do less, and servers that exist already."""

from __future__ import annotations

import psycopg
import pytest

from strata_conformance.servers import (
    Database,
    PgBouncer,
    PostgresClient,
    PostgresServer,
    ServerFailedError,
    ValkeyServer,
)


@pytest.fixture
def filled(postgres_database: Database) -> Database:
    postgres_database.execute(
        "CREATE SCHEMA other; CREATE TABLE other.t (n serial, word text); INSERT INTO other.t (word) VALUES ('a')"
    )
    return postgres_database


def test_a_fresh_database_is_empty_and_goes_with_all_that_is_connected_to_it(postgres_server: PostgresServer) -> None:
    exists = "SELECT datname FROM pg_database WHERE datname = '{}'"
    with postgres_server.fresh_database() as one, postgres_server.fresh_database() as other:
        one.execute("CREATE TABLE t ()")
        assert [] == other.execute("SELECT 1 FROM pg_class WHERE relname = 't'")
        connection = psycopg.connect(one.url, autocommit=True)

    assert [] == postgres_server.execute(exists.format(one.name))
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")


def test_a_fresh_database_is_a_copy_of_its_template(postgres_server: PostgresServer, filled: Database) -> None:
    with postgres_server.fresh_database(template=filled.name) as copy:
        copy.execute("DELETE FROM other.t")

        assert [("1",)] == filled.execute("SELECT count(*) FROM other.t")


def test_a_reader_reads_and_nothing_else(filled: Database) -> None:
    with PostgresClient(filled.reader()) as client:
        assert [("1", "a")] == client.execute("SELECT n, word FROM other.t")
        for statement in (
            "INSERT INTO other.t (word) VALUES ('b')",
            "DELETE FROM other.t",
            "CREATE TABLE other.u ()",
            "CREATE TABLE public.u ()",
            "CREATE TEMPORARY TABLE u ()",
            "CREATE SCHEMA mine",
        ):
            with pytest.raises(ServerFailedError, match=r"permission denied.*42501"):
                client.execute(statement)


def test_a_writer_writes_and_creates_nothing(filled: Database) -> None:
    with PostgresClient(filled.writer()) as client:
        assert [("2", "b")] == client.execute("INSERT INTO other.t (word) VALUES ('b') RETURNING n, word")
        client.execute("UPDATE other.t SET word = NULL; DELETE FROM other.t WHERE n = 1")
        assert [("2", None)] == client.execute("SELECT n, word FROM other.t")
        for statement in ("CREATE TABLE other.u ()", "CREATE TABLE public.u ()", "CREATE SCHEMA mine"):
            with pytest.raises(ServerFailedError, match=r"permission denied.*42501"):
                client.execute(statement)


def test_roles_go_with_their_database(postgres_server: PostgresServer) -> None:
    with postgres_server.fresh_database() as database:
        database.reader()
        database.writer()

    assert [] == postgres_server.execute(f"SELECT rolname FROM pg_roles WHERE rolname LIKE '{database.name}%'")


@pytest.mark.parametrize("method", ["scram-sha-256", "md5", "password"])
def test_the_client_logs_in_with_a_password(postgres_server: PostgresServer, method: str) -> None:
    role = f"with_{method.replace('-', '_')}"
    rules = postgres_server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    encryption = "md5" if method == "md5" else "scram-sha-256"
    postgres_server.execute(
        f"SET password_encryption = '{encryption}'; SET client_min_messages = error;"
        f"CREATE ROLE {role} LOGIN PASSWORD 's3cr:t/%'"
    )
    url = f"postgresql://{role}:%s@{postgres_server.host}:{postgres_server.port}/postgres"
    try:
        rules.write_text(f"host all {role} all {method}\n{before}")
        postgres_server.execute("SELECT pg_reload_conf()")

        assert [(role,)] == postgres_server.execute("SELECT current_user", url % "s3cr%3At%2F%25")
        with pytest.raises(ServerFailedError, match="password authentication failed"):
            postgres_server.execute("SELECT 1", url % "wrong")
    finally:
        rules.write_text(before)
        postgres_server.execute(f"SELECT pg_reload_conf(); DROP ROLE {role}")


@pytest.fixture
def existing_postgres(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    monkeypatch.setenv("STRATA_TEST_POSTGRES_URL", postgres_server.url)
    return postgres_server


def test_an_existing_postgres_is_used_and_left_running(existing_postgres: PostgresServer) -> None:
    with PostgresServer() as server:
        assert not server.is_own
        assert existing_postgres.port == server.port
        with server.fresh_database() as database:
            assert [("1",)] == database.execute("SELECT 1")
        for forbidden in (server.stop, server.kill, server.pause, server.resume):
            with pytest.raises(RuntimeError, match=r"STRATA_TEST_POSTGRES_URL.*PostgresServer\(own=True\)"):
                forbidden()

    assert existing_postgres.is_running


@pytest.mark.parametrize("needs", [{"own": True}, {"durable": True}, {"settings": {"work_mem": "1MB"}}])
def test_what_needs_a_server_of_its_own_gets_one(existing_postgres: PostgresServer, needs) -> None:
    assert PostgresServer(**needs).is_own


def test_an_existing_valkey_is_used_with_its_password_and_database(monkeypatch: pytest.MonkeyPatch) -> None:
    with ValkeyServer(settings={"requirepass": "s3cr:t"}) as existing:
        assert f"redis://:s3cr%3At@{existing.host}:{existing.port}/0" == existing.url
        monkeypatch.setenv("STRATA_TEST_VALKEY_URL", existing.url[:-1] + "5")
        with ValkeyServer() as server:
            server.command("SET", "a", "1")
            assert not server.is_own
            assert "s3cr" not in repr(server)
            assert existing.command("GET", "a") is None
            server.flush()
            assert server.command("GET", "a") is None


def test_pgbouncer_gives_each_transaction_to_whatever_connection_is_free(
    pgbouncer: PgBouncer, postgres_database: Database
) -> None:
    url = pgbouncer.in_front_of(postgres_database.url)
    with (
        psycopg.connect(url, prepare_threshold=None) as one,
        psycopg.connect(url, prepare_threshold=None) as other,
        psycopg.connect(url, prepare_threshold=None, autocommit=True) as third,
    ):
        process = "SELECT pg_backend_pid()"
        first = one.execute(process).fetchone()
        assert first != other.execute(process).fetchone()
        one.commit()

        assert first == third.execute(process).fetchone()
