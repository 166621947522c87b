"""What a proxy counts, by which tests pin round trips."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import redis

from strata_conformance.servers import Database, FaultProxy, ValkeyServer
from strata_conformance.servers._waiting import wait_until


@pytest.fixture
def connection(postgres_database: Database, postgres_proxy: FaultProxy) -> Any:
    with psycopg.connect(postgres_proxy.url(postgres_database.url), autocommit=True) as connection:
        yield connection


@pytest.fixture
def client(valkey_server: ValkeyServer, valkey_proxy: FaultProxy) -> Any:
    with redis.Redis.from_url(valkey_proxy.url(valkey_server.url)) as client:
        yield client


def received(client: socket.socket) -> bytes:
    """What has come, which is whole: the server writes each answer at once."""
    data = client.recv(1 << 16)
    assert data, "the connection was closed"
    return data


class TestPostgres:
    def test_a_statement_with_arguments_is_five_messages_and_one_round_trip(
        self, connection: Any, postgres_proxy: FaultProxy
    ) -> None:
        with postgres_proxy.recording() as recording:
            connection.execute("SELECT %s::int", (1,))

        assert Counter(["Parse", "Bind", "Describe", "Execute", "Sync"]) == recording.messages
        assert recording.messages == postgres_proxy.messages
        assert 1 == recording.round_trips
        (request,) = recording.requests
        assert "SELECT $1::int" == request.text

    def test_a_plain_statement_is_one_message(self, connection: Any, postgres_proxy: FaultProxy) -> None:
        with postgres_proxy.recording() as recording:
            connection.execute("SELECT 1")
            connection.execute("SELECT 2; SELECT 3")

        assert {"Query": 2} == recording.messages
        assert ["SELECT 1", "SELECT 2; SELECT 3"] == [request.text for request in recording.requests]
        assert 2 == recording.round_trips == postgres_proxy.requests

    def test_a_prepared_statement_is_known_by_its_text(self, connection: Any, postgres_proxy: FaultProxy) -> None:
        connection.execute("SELECT %s::text", ("a",), prepare=True)
        fault = postgres_proxy.reset("reply", match=b"SELECT $1::text")
        connection.execute("SELECT 1")

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT %s::text", ("b",), prepare=True)
        assert 1 == fault.fired

    def test_arguments_can_be_matched(self, connection: Any, postgres_proxy: FaultProxy) -> None:
        fault = postgres_proxy.reset("request", match=b"thread-7")
        for number in range(7):
            connection.execute("SELECT %s::text", (f"thread-{number}",))

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT %s::text", ("thread-7",))
        assert 1 == fault.fired

    def test_a_pipeline_is_one_round_trip(self, connection: Any, postgres_proxy: FaultProxy) -> None:
        with postgres_proxy.recording() as recording, connection.pipeline():
            for number in range(10):
                connection.execute("SELECT %s::int", (number,))

        assert 10 == recording.messages["Execute"]
        assert 1 == recording.round_trips

    def test_rows_that_are_copied_in_are_followed(self, connection: Any, postgres_proxy: FaultProxy) -> None:
        connection.execute("CREATE TABLE numbers (n int)")
        with connection.cursor() as cursor, cursor.copy("COPY numbers FROM STDIN") as copy:
            for number in range(3):
                copy.write_row((number,))
        with postgres_proxy.recording() as recording:
            (count,) = connection.execute("SELECT count(*) FROM numbers WHERE n > %s", (-1,)).fetchone()

        assert 3 == count
        assert [True] == [request.starts_round_trip for request in recording.requests]

    def test_a_statement_can_be_cancelled_through_it(
        self, connection: Any, postgres_database: Database, postgres_proxy: FaultProxy
    ) -> None:
        running = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(60)'"
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(connection.execute, "SELECT pg_sleep(60)")
            assert wait_until(lambda: bool(postgres_database.execute(running)))
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                answer.result(10)

        assert 2 == postgres_proxy.connections


class TestRedis:
    def test_every_command_is_counted_by_its_name(self, client: Any, valkey_proxy: FaultProxy) -> None:
        with valkey_proxy.recording() as recording:
            client.set("a", 1)
            client.get("a")
            client.eval("return 1", 0)

        assert ["SET", "GET", "EVAL"] == [request.kind for request in recording.requests]
        assert Counter(["SET", "GET", "EVAL"]) == recording.messages == valkey_proxy.messages
        assert 3 == recording.round_trips

    def test_a_pipeline_is_one_round_trip(self, client: Any, valkey_proxy: FaultProxy) -> None:
        client.ping()
        with valkey_proxy.recording() as recording:
            pipeline = client.pipeline(transaction=False)
            for number in range(50):
                pipeline.set(f"key-{number}", "x" * 1000)
            pipeline.execute()

        assert {"SET": 50} == recording.messages
        assert 1 == recording.round_trips

    def test_large_values_pass_whole(self, client: Any) -> None:
        value = bytes(range(256)) * 20_000
        client.set("large", value)

        assert value == client.get("large")

    @pytest.mark.parametrize("protocol", [2, 3])
    def test_replies_of_every_kind_are_told_apart(
        self, valkey_server: ValkeyServer, valkey_proxy: FaultProxy, protocol: int
    ) -> None:
        scripts = [
            "return {1, {2, false, 'three'}, {}}",
            "return redis.error_reply('ERR no')",
            "return nil",
            "redis.setresp(3); return {map={a={double=1.5}}}",
            "redis.setresp(3); return {set={a=true}}",
            "redis.setresp(3); return true",
            "redis.setresp(3); return {big_number='123456789012345678901234567890'}",
            "redis.setresp(3); return {verbatim_string={format='txt', string='abc'}}",
        ]
        with (
            redis.Redis.from_url(valkey_proxy.url(valkey_server.url), protocol=protocol) as client,
            valkey_proxy.recording() as recording,
        ):
            for script in scripts:
                with contextlib.suppress(redis.ResponseError):  # one of them is an error
                    client.eval(script, 0)
                assert client.ping()

        assert {"EVAL": len(scripts), "PING": len(scripts)} == recording.messages
        assert 2 * len(scripts) == recording.round_trips

    def test_what_a_server_pushes_is_no_reply(self, valkey_server: ValkeyServer, valkey_proxy: FaultProxy) -> None:
        with socket.create_connection((valkey_proxy.host, valkey_proxy.port)) as client:
            client.settimeout(10)
            client.sendall(b"HELLO 3\r\nCLIENT TRACKING ON\r\nGET watched\r\n")
            while not received(client).endswith(b"_\r\n"):
                pass
            valkey_server.command("SET", "watched", "1")
            assert received(client).startswith(b">2\r\n$10\r\ninvalidate")
            valkey_proxy.reset("reply", 2)
            client.sendall(b"PING\r\n")
            assert b"+PONG\r\n" == received(client)
            client.sendall(b"PING\r\n")
            with pytest.raises(ConnectionResetError):
                client.recv(100)
