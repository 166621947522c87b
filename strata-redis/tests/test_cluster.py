"""In a cluster a script touches keys of one slot, commands find the node that has it, and moved slots are followed."""

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Any

import pytest
from redis_support import DIGEST, HOUR, Place, erase, opened, save, with_backend

from strata_conformance.servers import RedisCluster, ServerFailedError
from strata_conformance.servers.fixtures import server_or_outcome
from strata_core.errors import StoreUnavailableError
from strata_core.rows import Commit, Committed, Drop, HeadQuery, Take
from strata_redis import RedisBackend, _calls
from strata_redis._address import Address
from strata_redis._calls import Lost, ServerError
from strata_redis._cluster import Cluster, slot_of


async def use_everything(backend: RedisBackend) -> None:
    threads = [f"t{number}" for number in range(64)]
    await backend.commit([save(each, metadata={"a": "b"}, due=5, blobs=[(DIGEST, each.encode())]) for each in threads])
    taken = await backend.commit([Commit(each, os.urandom(8), lease=Take("me", HOUR)) for each in threads])
    tokens = [outcome.token for outcome in taken if isinstance(outcome, Committed)]
    await backend.commit(
        [
            save(each, "completed", token=token, lease=Drop(), metadata={"a": "b"})
            for each, token in zip(threads, tokens, strict=True)
        ]
    )
    heads = await backend.list_heads(HeadQuery(states=frozenset({"completed"}), metadata={"a": "b"}, limit=64))
    assert sorted(threads) == sorted(head.thread_id for head in heads)
    assert threads == [(await backend.read_blobs(each, [DIGEST]))[DIGEST].decode() for each in threads]
    assert [2] * 64 == [len(await backend.read(each, 0, None)) for each in threads]
    await backend.list_heads(HeadQuery(rowless=True, leased=True))
    await backend.commit([erase(each) for each in threads])
    assert [] == await backend.list_heads(HeadQuery())


def test_every_key_of_a_script_is_named(small_cluster: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that begins with ``#!lua`` may touch no key of another slot than those it names."""
    for script in (_calls.COMMIT, _calls.HEADS, _calls.ROWS, _calls.SET_UP, _calls.SWEEP, _calls.WALK):
        monkeypatch.setattr(script, "text", b"#!lua\n" + script.text)
        monkeypatch.setattr(script, "digest", b"0" * 40)  # so that the text is sent

    with_backend(small_cluster, use_everything, finished_thread_ttl=None)


def test_threads_of_all_nodes_are_written_listed_and_erased(cluster: Place) -> None:
    with_backend(cluster, use_everything)

    assert {"tokens", "meta"} == {name.rpartition("}")[2] or "meta" for name in cluster.names()}
    assert all(server.command("DBSIZE") > 0 for server in cluster.servers)


def test_two_threads_on_different_nodes_go_in_one_batch(cluster: Place) -> None:
    """Each has an outcome of its own."""

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("a")])
        outcomes = await backend.commit([save("a", after=7), *(save(f"t{number}") for number in range(40))])

        assert [False] + [True] * 40 == [isinstance(outcome, Committed) for outcome in outcomes]
        owners = {
            number
            for number, server in enumerate(cluster.servers)
            for thread_id in ("a", *(f"t{number}" for number in range(40)))
            if cluster.thread_key(thread_id) in server.command("KEYS", "*")
        }
        assert {0, 1, 2} == owners

    with_backend(cluster, check)


def test_a_store_is_found_from_any_node(cluster: Place, redis_cluster: RedisCluster) -> None:
    with_backend(cluster, lambda backend: backend.commit([save("t")]))
    for node in redis_cluster.nodes:
        url = f"redis://127.0.0.1:1,127.0.0.1:{node.port}?cluster=true&prefix={cluster.prefix}"
        assert with_backend(url, lambda backend: backend.read_head("t"), read_only=True) is not None


def test_a_slot_that_moves_is_followed(cluster: Place, redis_cluster: RedisCluster) -> None:
    """Its keys are handed over one by one.  While that goes on its threads are read, and saves of them are told as not
    written, since a server takes no script on several keys then; afterwards everything goes on.
    """

    async def check(backend: RedisBackend) -> None:
        await backend.commit([save("t"), *(save(f"u{number}") for number in range(20))])
        slot = slot_of(cluster.tag_of("t"))
        key = cluster.thread_key("t")
        source = next(node for node in redis_cluster.nodes if key in node.command("KEYS", "*"))
        target = next(node for node in redis_cluster.nodes if node is not source)
        names = {node: node.command("CLUSTER", "MYID") for node in (source, target)}
        target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
        for moved in source.command("CLUSTER", "GETKEYSINSLOT", slot, 1000):
            source.command("MIGRATE", target.host, target.port, moved, 0, 5000)
        with pytest.raises(StoreUnavailableError, match="being moved between nodes") as caught:
            await backend.commit([save("t")])
        assert not caught.value.maybe_written
        assert await backend.read_head("t") is not None
        for node in (target, source, *redis_cluster.nodes):
            node.command("CLUSTER", "SETSLOT", slot, "NODE", names[target])
        (after,) = await backend.commit([save("t")])
        rows = await backend.read("t", 0, None)
        heads = await backend.list_heads(HeadQuery(limit=100))

        assert isinstance(after, Committed)
        assert 2 == len(rows)
        assert 21 == len(heads)

    with_backend(cluster, check)


def test_a_node_that_is_away_takes_no_thread_of_the_others_with_it() -> None:
    """A save on it is told as not written; the others go on, and it does when it is back."""
    with server_or_outcome(RedisCluster(3)) as nodes:
        for node in nodes.nodes:
            node.command("CONFIG", "SET", "cluster-require-full-coverage", "no")
        place = Place(tuple(nodes.nodes), f"{nodes.url.removesuffix('/0')}?cluster=true", "p")

        async def check(backend: RedisBackend) -> None:
            threads = [f"t{number}" for number in range(30)]
            await backend.commit([save(each) for each in threads])
            away = nodes.nodes[2]
            lost = [each for each in threads if place.thread_key(each) in away.command("KEYS", "*")]
            away.kill()
            outcomes = await asyncio.gather(*(backend.commit([save(each)]) for each in threads), return_exceptions=True)
            refused = [each for each, got in zip(threads, outcomes, strict=True) if isinstance(got, BaseException)]
            assert lost == refused
            assert {StoreUnavailableError} == {type(got) for got in outcomes if isinstance(got, BaseException)}

        with_backend(place, check)


class Scripted:
    """A node that answers as a test says."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[Sequence[bytes]] = []
        self.is_closed = False

    async def ask(self, commands: Sequence[Sequence[bytes]], *, writes: bool = False) -> list[Any]:
        self.asked += commands
        return [self.answers[command[0].decode()] for command in commands]

    async def close(self) -> None:
        self.is_closed = True


def scripted(**nodes: dict[str, Any]) -> tuple[Cluster, dict[str, Scripted]]:
    made = {name: Scripted(answers) for name, answers in nodes.items()}
    return Cluster([Address("seed", 1)], lambda address: made[address.host]), made  # type: ignore[arg-type,return-value]


SLOTS = [[0, 16383, [b"seed", 1, b"id"]]]


def test_redirections_are_followed_and_end() -> None:
    """Nothing was done where a node sends a command on; but it is not sent on for ever."""
    moved, ask = ServerError("MOVED 5 other:2"), ServerError("ASK 5 third:3")
    cluster, nodes = scripted(
        seed={"CLUSTER": SLOTS, "GET": moved, "SET": ask, "DEL": moved},
        other={"GET": b"there", "DEL": ServerError("MOVED 5 seed:1")},
        third={"ASKING": b"OK", "SET": b"done"},
    )

    async def check() -> list[Any]:
        return await cluster.ask(
            [(b"{a}", (b"GET", b"{a}x")), (b"{b}", (b"SET", b"{b}x")), (b"{c}", (b"DEL", b"{c}x"))]
        )

    answers = asyncio.run(check())

    assert [b"there", b"done"] == answers[:2]
    assert isinstance(answers[2], ServerError)
    assert "MOVED" == answers[2].code
    assert [(b"ASKING",), (b"SET", b"{b}x")] == nodes["third"].asked
    assert 1 == nodes["other"].asked.count((b"GET", b"{a}x"))


@pytest.mark.parametrize("host", ["", "?"])
def test_a_node_that_does_not_know_its_own_name_means_the_one_that_was_asked(host: str) -> None:
    cluster, nodes = scripted(
        seed={
            "CLUSTER": [[0, 16383, [host.encode(), 1, b"id"]]],
            "ASKING": b"OK",
            "GET": ServerError(f"ASK 5 {host}:1"),
        }
    )
    asyncio.run(cluster.ask([(b"{a}", (b"GET", b"{a}x"))]))

    assert (b"ASKING",) in nodes["seed"].asked


@pytest.mark.parametrize("said", ["MOVED", "MOVED 5", "MOVED five other:2", "ASK 5 other", "MOVED 5 other:port"])
def test_a_redirection_that_is_none_is_an_answer_like_others(said: str) -> None:
    cluster, _ = scripted(seed={"CLUSTER": SLOTS, "GET": ServerError(said)})
    (answer,) = asyncio.run(cluster.ask([(b"{a}", (b"GET", b"{a}x"))]))

    assert said == str(answer)


@pytest.mark.parametrize("nothing", [Lost(ConnectionRefusedError("refused"), sent=False), [], None])
def test_a_cluster_that_nobody_can_tell_about_is_unavailable_and_nothing_was_sent(nothing: Any) -> None:
    cluster, _ = scripted(seed={"CLUSTER": nothing})
    (answer,) = asyncio.run(cluster.ask([(b"{a}", (b"GET", b"{a}x"))]))

    assert isinstance(answer, Lost)
    assert not answer.sent
    assert "seed:1" in str(answer)


def test_the_cluster_is_asked_again_after_a_node_was_away() -> None:
    cluster, nodes = scripted(
        seed={"CLUSTER": [[0, 16383, [b"old", 2, b"id"]]]},
        old={"GET": Lost(ConnectionResetError("reset"), sent=True)},
        new={"GET": b"there"},
    )

    async def check() -> list[Any]:
        first = await cluster.ask([(b"{a}", (b"GET", b"{a}x"))])
        nodes["old"].answers["CLUSTER"] = nodes["seed"].answers["CLUSTER"] = [[0, 16383, [b"new", 3, b"id"]]]
        return first + await cluster.ask([(b"{a}", (b"GET", b"{a}x"))])

    first, second = asyncio.run(check())

    assert isinstance(first, Lost)
    assert b"there" == second
    assert nodes["old"].is_closed


@pytest.mark.parametrize(
    ("tag", "slot"), [(b"{123456789}", 12739), (b"{user1000}", 3443), (b"{foo}", 12182), (b"{strata:meta}", None)]
)
def test_slots_are_those_of_the_servers(small_cluster: Place, tag: bytes, slot: int | None) -> None:
    (server,) = small_cluster.servers

    assert slot_of(tag) == server.command("CLUSTER", "KEYSLOT", tag + b"anything")
    assert slot in {None, slot_of(tag)}


def test_a_cluster_client_on_a_plain_server_says_so(valkey: Place) -> None:
    async def check() -> None:
        async with opened(f"{valkey.server_url.removesuffix('/0')}?cluster=true"):
            pass

    with pytest.raises(StoreUnavailableError, match="tells its slots"):
        asyncio.run(check())
    with pytest.raises(ServerFailedError):
        valkey.servers[0].command("CLUSTER", "SLOTS")


def scripts_of(place: Place) -> int:
    """Return how many scripts the only server of a place was sent by their digest."""
    (server,) = place.servers
    found = re.search(rb"cmdstat_evalsha:calls=(\d+)", server.command("INFO", "commandstats"))
    return 0 if found is None else int(found[1])


def test_a_server_that_takes_no_script_on_several_slots_gets_one_of_each_bucket(small_cluster: Place) -> None:
    """As one behind which a proxy hides a cluster; it is found out once."""

    async def check(backend: RedisBackend) -> None:
        server = backend._server
        assert server is not None
        assert server.spans
        threads = [f"t{number}" for number in range(40)]
        outcomes = await backend.commit([save(each) for each in threads])
        assert [0] * 40 == [outcome.sequence for outcome in outcomes if isinstance(outcome, Committed)]
        before = scripts_of(small_cluster)
        await backend.commit([save(each) for each in threads])
        assert 16 == scripts_of(small_cluster) - before
        assert [2] * 40 == [len(await backend.read(each, 0, None)) for each in threads]

    with_backend(small_cluster.url.replace("cluster=true&", ""), check)


def test_a_plain_client_on_a_cluster_is_told_what_to_say(cluster: Place) -> None:
    async def check() -> None:
        async with opened(cluster.url.replace("cluster=true&", "")) as backend:
            await backend.commit([save(f"t{number}") for number in range(40)])

    with pytest.raises(StoreUnavailableError, match=r"add \?cluster=true to the URL") as caught:
        asyncio.run(check())
    assert caught.value.__cause__ is not None
