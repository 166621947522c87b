"""A Redis Cluster for tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from strata_conformance.servers._errors import MissingServerError, ServerFailedError
from strata_conformance.servers._redis import KeyValueServer, RedisServer, ValkeyServer
from strata_conformance.servers._waiting import wait_until

__all__ = ["RedisCluster"]

_SLOTS: Final = 16_384
_SETTINGS: Final[dict[str, str | int]] = {
    "cluster-enabled": "yes",
    "cluster-replica-validity-factor": 0,  # a replica takes over however long it heard nothing from its master
    "repl-diskless-sync-delay": 0,
}


class RedisCluster:
    """A cluster, always its own; it takes two seconds before it accepts writes.

    One node is enough to see that keys of several slots are refused, three that a client follows redirections, three
    with a replica each that a master which was killed is replaced: that takes a majority of masters.

    Args:
        nodes: How many masters.
        replicas: How many each of them has.
        node_timeout: After how many milliseconds without an answer a node counts as failed.
        durable: See `Server`.
        kind: Of which product; None is Valkey or, where that is not installed, Redis.

    Attributes:
        nodes: The masters, which a test may stop and start.
        replicas: The replicas: first one of each master, in their order, then another one of each.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        replicas: int = 0,
        node_timeout: int = 2000,
        durable: bool = False,
        kind: type[KeyValueServer] | None = None,
    ) -> None:
        self._count: Final = nodes
        self._replicas: Final = replicas
        self._settings: Final = _SETTINGS | {"cluster-node-timeout": node_timeout}
        self._durable: Final = durable
        self._kind = kind
        self._stack = ExitStack()
        self.nodes: list[KeyValueServer] = []
        self.replicas: list[KeyValueServer] = []

    @property
    def url(self) -> str:
        """The URL of the first node, from which a client learns the others."""
        return self.nodes[0].url

    def flush(self) -> None:
        """Remove everything from every master, and so from its replicas."""
        for node in self.nodes:
            node.flush()

    def start(self) -> Self:
        """Start the nodes and join them; return when every master accepts writes and every replica follows its own.

        Raises:
            MissingServerError: No server is installed.
            ServerFailedError: They did not come up or together.
        """
        kind = self._kind or _installed()
        self.nodes += [self._started(kind) for _ in range(self._count)]
        self.replicas += [self._started(kind) for _ in range(self._count * self._replicas)]
        bounds = [_SLOTS * number // self._count for number in range(self._count + 1)]
        for number, node in enumerate(self.nodes):
            slots = range(bounds[number], bounds[number + 1])
            node.command("CLUSTER", "ADDSLOTS", *slots)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in [*self.nodes[1:], *self.replicas]:
            self.nodes[0].command("CLUSTER", "MEET", node.host, node.port)
        self._wait(self._knows_all)
        for number, node in enumerate(self.replicas):
            node.command("CLUSTER", "REPLICATE", self.nodes[number % self._count].command("CLUSTER", "MYID"))
        self._wait(self._is_whole)
        return self

    def close(self) -> None:
        """Stop the nodes and remove their folders."""
        self._stack.close()
        self.nodes.clear()
        self.replicas.clear()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self, kind: type[KeyValueServer]) -> KeyValueServer:
        return self._stack.enter_context(kind(durable=self._durable, own=True, settings=self._settings))

    def _wait(self, holds: Callable[[KeyValueServer], bool]) -> None:
        if not wait_until(lambda: all(map(holds, [*self.nodes, *self.replicas]))):
            message = f"the cluster did not form; the end of a log:\n{self.nodes[0].log[-2000:]}"
            raise ServerFailedError(message)

    def _knows_all(self, node: KeyValueServer) -> bool:
        count = self._count * (1 + self._replicas)
        return f"cluster_known_nodes:{count}\r".encode() in node.command("CLUSTER", "INFO")

    def _is_whole(self, node: KeyValueServer) -> bool:
        if b"cluster_state:ok" not in node.command("CLUSTER", "INFO"):
            return False
        facts = node.command("INFO", "replication")
        if node in self.replicas:
            return b"role:slave" in facts and b"master_link_status:up" in facts
        return bool(facts.count(b"state=online") == self._replicas)


def _installed() -> type[KeyValueServer]:
    try:
        ValkeyServer.find()
    except MissingServerError as missing:
        try:
            RedisServer.find()
        except MissingServerError:
            raise missing from None
        return RedisServer
    return ValkeyServer
