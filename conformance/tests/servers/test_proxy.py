"""Every fault of the proxy really happens, with both protocols, and what passes is counted."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from strata_conformance.servers import FaultProxy, UnfiredWireFaultError, ValkeyServer
from strata_conformance.servers._ports import free_port


def test_without_faults_everything_passes(counter: Any) -> None:
    client = counter.connect()

    assert [1, 2, 3] == [counter.count_up(client) for _ in range(3)]
    assert 3 == counter.value()


def test_a_connection_that_is_reset_when_it_is_made_is_lost_and_the_next_one_works(counter: Any) -> None:
    fault = counter.proxy.reset("connect")

    with pytest.raises(counter.lost):
        counter.count_up(counter.connect())
    assert 1 == fault.fired
    assert 1 == counter.count_up(counter.connect())


def test_a_request_that_is_reset_never_reaches_the_server(counter: Any) -> None:
    client = counter.connect()
    counter.count_up(client)
    fault = counter.proxy.reset("request", 2)

    assert 2 == counter.count_up(client)
    with pytest.raises(counter.lost):
        counter.count_up(client)
    assert 1 == fault.fired
    assert 2 == counter.value()


def test_an_answer_that_is_reset_is_lost_and_the_server_has_done_it(counter: Any) -> None:
    client = counter.connect()
    fault = counter.proxy.reset("reply")

    with pytest.raises(counter.lost):
        counter.count_up(client)
    assert 1 == fault.fired
    assert 1 == counter.value()


@pytest.mark.parametrize("at", ["request", "reply"])
def test_what_hangs_goes_on_when_it_is_released(counter: Any, at: str) -> None:
    client = counter.connect()
    fault = counter.proxy.hang(at)

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(counter.count_up, client)
        fault.wait()
        assert (0 if at == "request" else 1) == counter.value()
        assert not answer.done()
        counter.proxy.release(fault)
        assert 1 == answer.result(10)
    assert 1 == counter.value()


def test_a_connection_that_hangs_when_it_is_made_goes_on_when_it_is_released(counter: Any) -> None:
    fault = counter.proxy.hang("connect")

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: counter.count_up(counter.connect()))
        fault.wait()
        assert not answer.done()
        counter.proxy.release(fault)
        assert 1 == answer.result(10)


@pytest.mark.parametrize(("at", "done"), [("request", 0), ("reply", 1)])
def test_what_is_cut_arrives_in_part(counter: Any, at: Any, done: int) -> None:
    client = counter.connect()
    fault = counter.proxy.cut(at, 3)

    with pytest.raises(counter.lost):
        counter.count_up(client)
    assert 1 == fault.fired
    assert done == counter.value()


def test_refused_connections_are_refused_and_those_that_are_open_stay(counter: Any) -> None:
    client = counter.connect()
    counter.count_up(client)
    counter.proxy.refuse()

    with pytest.raises(counter.lost, match="refused"):
        counter.count_up(counter.connect())
    assert 2 == counter.count_up(client)
    counter.proxy.accept()
    assert 3 == counter.count_up(counter.connect())


def test_all_connections_can_be_reset_at_once(counter: Any) -> None:
    clients = [counter.connect() for _ in range(3)]
    for client in clients:
        counter.count_up(client)
    counter.proxy.reset_all()

    for client in clients:
        with pytest.raises(counter.lost):
            counter.count_up(client)
    assert 3 == counter.value()


def test_a_delay_holds_back_each_way(counter: Any) -> None:
    client = counter.connect()
    counter.count_up(client)
    counter.proxy.delay(requests=0.04, replies=0.03)
    begun = time.monotonic()
    counter.count_up(client)

    assert 0.07 <= time.monotonic() - begun


def test_what_is_sent_together_is_delayed_once(valkey_server: ValkeyServer, valkey_proxy: FaultProxy) -> None:
    valkey_proxy.delay(requests=0.05)
    with socket.create_connection((valkey_proxy.host, valkey_proxy.port)) as client:
        client.settimeout(10)
        begun = time.monotonic()
        client.sendall(b"PING\r\n" * 100)
        answers = b""
        while len(answers) < 700:
            answers += client.recv(4096)

    assert 100 * b"+PONG\r\n" == answers
    assert 100 * 0.05 > time.monotonic() - begun


def test_only_requests_that_match_count(counter: Any) -> None:
    client = counter.connect()
    kind = counter.add
    other = counter.proxy.reset("request", match=b"no such request")
    fault = counter.proxy.reset("request", 2, match=lambda request: request.kind == kind)

    assert 1 == counter.count_up(client)
    with pytest.raises(counter.lost):
        counter.count_up(client)
    assert (0, 1) == (other.fired, fault.fired)
    other.withdraw()


def test_a_fault_can_strike_again_and_again_until_it_is_withdrawn(counter: Any) -> None:
    fault = counter.proxy.reset("connect", times=None)
    for _ in range(3):
        with pytest.raises(counter.lost):
            counter.count_up(counter.connect())
    fault.withdraw()

    assert 1 == counter.count_up(counter.connect())
    assert 3 == fault.fired


def test_logging_in_does_not_use_up_a_fault_and_is_not_counted(counter: Any) -> None:
    fault = counter.proxy.reset("request")
    with counter.proxy.recording() as recording:
        client = counter.connect()
        assert 0 == fault.fired
        with pytest.raises(counter.lost):
            counter.count_up(client)

    assert 1 == recording.connections
    assert [counter.add] == [request.kind for request in recording.requests]


def test_the_last_answer_that_a_server_gives_is_passed_on_when_its_end_follows(valkey_server: ValkeyServer) -> None:
    with FaultProxy.before(valkey_server) as proxy, socket.create_connection((proxy.host, proxy.port)) as client:
        client.settimeout(10)
        client.sendall(b"PING\r\nQUIT\r\n")
        answers = b""
        while part := client.recv(100):
            answers += part

    assert b"+PONG\r\n+OK\r\n" == answers


def test_a_fault_that_never_strikes_fails_the_test(valkey_server: ValkeyServer) -> None:
    def test() -> None:
        with FaultProxy.before(valkey_server) as proxy:
            fault = proxy.hang("reply", 3)
            with pytest.raises(UnfiredWireFaultError):
                fault.wait(0.01)

    with pytest.raises(UnfiredWireFaultError, match="never struck: hang at reply 3"):
        test()


def test_an_error_of_the_test_is_not_hidden_by_a_fault_that_never_struck(valkey_server: ValkeyServer) -> None:
    def test() -> None:
        with FaultProxy.before(valkey_server) as proxy:
            proxy.reset("reply")
            raise KeyError

    with pytest.raises(KeyError):
        test()


def test_a_fault_that_makes_no_sense_is_refused(valkey_proxy: FaultProxy) -> None:
    with pytest.raises(ValueError, match="no bytes"):
        valkey_proxy.cut("connect", 3)
    with pytest.raises(ValueError, match="at least 1"):
        valkey_proxy.reset("request", 0)


def test_it_closes_with_clients_that_talk_wait_and_hang(counter: Any) -> None:
    idle, hanging = counter.connect(), counter.connect()
    counter.count_up(idle)
    fault = counter.proxy.hang("reply")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(counter.count_up, hanging)
        fault.wait()
        counter.proxy.close()
        with pytest.raises(counter.lost):
            answer.result(10)

    assert "strata-fault-proxy" not in {thread.name for thread in threading.enumerate()}
    counter.proxy.close()


def test_a_client_that_gives_up_a_hanging_request_takes_it_with_it(valkey_server: ValkeyServer) -> None:
    valkey_server.flush()
    with FaultProxy.before(valkey_server) as proxy:
        fault = proxy.hang("request")
        with socket.create_connection((proxy.host, proxy.port)) as client:
            client.sendall(b"INCR given-up\r\n")
            fault.wait()
        proxy.reset_all()
        proxy.release(fault)

    assert valkey_server.command("GET", "given-up") is None


def test_a_server_that_is_away_looks_like_a_lost_connection() -> None:
    with (
        FaultProxy("127.0.0.1", free_port()) as proxy,
        socket.create_connection((proxy.host, proxy.port)) as client,
        pytest.raises(ConnectionResetError),
    ):
        client.recv(1)


def test_an_unknown_protocol_passes_in_pieces(valkey_server: ValkeyServer) -> None:
    with (
        FaultProxy(valkey_server.host, valkey_server.port) as proxy,
        socket.create_connection((proxy.host, proxy.port)) as client,
        proxy.recording() as recording,
    ):
        client.sendall(b"PING\r\n")
        assert b"+PONG\r\n" == client.recv(100)
        fault = proxy.reset("reply")
        client.sendall(b"PING\r\n")
        with pytest.raises(ConnectionResetError):
            client.recv(100)

    assert 1 == fault.fired
    assert [b"PING\r\n"] * 2 == [request.content for request in recording.requests]


def test_two_proxies_in_front_of_one_server_do_not_meet(valkey_server: ValkeyServer) -> None:
    with FaultProxy.before(valkey_server) as one, FaultProxy.before(valkey_server) as other:
        one.refuse()
        with socket.create_connection((other.host, other.port)) as client:
            client.sendall(b"PING\r\n")
            assert b"+PONG\r\n" == client.recv(100)

    assert (0, 1) == (one.requests, other.requests)


def test_two_connections_that_are_made_at_once_have_numbers_of_their_own(valkey_proxy: FaultProxy) -> None:
    """Both wait to be accepted while the proxy is busy, so that it accepts them in one go."""
    busy, free = threading.Event(), threading.Event()

    def be_busy() -> None:
        busy.set()
        free.wait(10)

    assert valkey_proxy._loop is not None
    valkey_proxy._loop.call_soon_threadsafe(be_busy)
    busy.wait(10)
    clients = [socket.create_connection((valkey_proxy.host, valkey_proxy.port), 10) for _ in range(2)]
    free.set()
    with valkey_proxy.recording() as recording:
        for client in clients:
            client.sendall(b"*1\r\n$4\r\nPING\r\n")
            assert b"+PONG\r\n" == client.recv(100)
            client.close()

    assert {1, 2} == {request.connection for request in recording.requests}


def test_a_connection_that_is_reset_before_it_is_served_is_not_left_open(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever resets all connections may do so in the very turn in which one is made."""
    connected = FaultProxy._connected

    def and_reset(proxy: FaultProxy, *streams: Any) -> None:
        connected(proxy, *streams)
        for task in proxy._tasks:
            task.cancel()

    monkeypatch.setattr(FaultProxy, "_connected", and_reset)
    with FaultProxy.before(valkey_server) as proxy, socket.create_connection((proxy.host, proxy.port)) as client:
        client.settimeout(10)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
