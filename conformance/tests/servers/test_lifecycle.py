"""Servers stop, crash, freeze and come back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from strata_conformance.servers import PostgresServer, RedisCluster, RedisServer, Server, ValkeyServer


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


def crash(server: Server) -> None:
    server.kill()


def stop(server: Server) -> None:
    server.stop()


def stop_at_once(server: Server) -> None:
    server.stop(immediate=True)


@pytest.mark.parametrize("end", [crash, stop, stop_at_once])
def test_what_a_durable_postgres_acknowledged_is_there_after_it(own_postgres: PostgresServer, end) -> None:
    url, name = own_postgres.url, end.__name__
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (n int)")
        connection.execute(f"INSERT INTO {name} VALUES (1)")
        end(own_postgres)
        assert not own_postgres.is_running
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    own_postgres.start()

    assert url == own_postgres.url
    assert [("1",)] == own_postgres.execute(f"SELECT n FROM {name}")
    assert [("on", "on")] == own_postgres.execute(
        "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
    )


@pytest.mark.parametrize("kind", [ValkeyServer, RedisServer])
def test_what_a_durable_key_value_server_acknowledged_is_there_after_it(kind) -> None:
    with kind(durable=True) as server:
        url = server.url
        for end in (crash, stop, stop_at_once):
            server.command("SET", end.__name__, "1")
            end(server)
            with pytest.raises(ConnectionRefusedError):
                server.command("PING")
            server.start()

        assert url == server.url
        assert [b"1"] * 3 == server.command("MGET", "crash", "stop", "stop_at_once")


def test_a_paused_postgres_keeps_its_connections_and_answers_when_it_resumes(own_postgres: PostgresServer) -> None:
    with psycopg.connect(own_postgres.url, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        own_postgres.pause()
        answer = pool.submit(connection.execute, "SELECT 1")
        with pytest.raises(TimeoutError):
            answer.result(0.1)
        own_postgres.resume()

        assert (1,) == answer.result(60).fetchone()


def test_a_paused_valkey_keeps_its_connections_and_answers_when_it_resumes() -> None:
    with ValkeyServer(own=True) as server, socket.create_connection((server.host, server.port)) as client:
        server.pause()
        client.sendall(b"PING\r\n")
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(60)
        server.resume()

        assert b"+PONG\r\n" == client.recv(7)


def test_a_paused_server_can_be_stopped(own_postgres: PostgresServer) -> None:
    own_postgres.pause()
    own_postgres.stop()
    own_postgres.start()

    assert [("1",)] == own_postgres.execute("SELECT 1")


def test_two_servers_of_a_kind_run_side_by_side(own_postgres: PostgresServer, postgres_server: PostgresServer) -> None:
    with ValkeyServer(own=True) as one, ValkeyServer(own=True) as other:
        one.command("SET", "a", "1")

        assert other.command("GET", "a") is None
        assert 4 == len({server.port for server in (one, other, own_postgres, postgres_server)})


def test_a_server_that_is_closed_leaves_nothing() -> None:
    server = ValkeyServer(own=True).start()
    folder = server.folder
    assert (folder / "log").exists()
    server.close()
    server.close()

    assert not folder.exists()
    with pytest.raises(RuntimeError, match="does not run"):
        server.pid  # noqa: B018  # it is a property
    with pytest.raises(RuntimeError, match="no folder"):
        server.folder  # noqa: B018  # it is a property


def test_a_server_starts_once(valkey_server: ValkeyServer) -> None:
    with ValkeyServer(own=True) as server, pytest.raises(RuntimeError, match="runs already"):
        server.start()


def test_settings_reach_the_server() -> None:
    with ValkeyServer(settings={"maxclients": 77}) as server:
        assert [b"maxclients", b"77"] == server.command("CONFIG", "GET", "maxclients")


def test_a_server_that_cannot_start_shows_its_log_and_leaves_nothing(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(Exception, match=r"Valkey did not start(.|\n)*no-such-setting"):
        ValkeyServer(settings={"no-such-setting": 1}).__enter__()

    assert [] == list(tmp_path.iterdir())


def test_a_cluster_refuses_keys_of_several_slots_and_redirects(redis_cluster: RedisCluster) -> None:
    one, _, last = redis_cluster.nodes
    with pytest.raises(Exception, match="CROSSSLOT"):
        one.command("MGET", "a", "b")
    with pytest.raises(Exception, match=f"MOVED 15495 {last.host}:{last.port}"):
        one.command("SET", "a", "1")

    assert b"OK" == last.command("SET", "a", "1")
    redis_cluster.flush()
    assert last.command("GET", "a") is None
