"""A Redis Cluster for tests."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from strata_conformance.servers._errors import MissingServerError, ServerFailedError
from strata_conformance.servers._redis import KeyValueServer, RedisServer, ValkeyServer
from strata_conformance.servers._waiting import wait_until

__all__ = ["RedisCluster"]

_SLOTS: Final = 16_384
_SETTINGS: Final[dict[str, str | int]] = {"cluster-enabled": "yes", "cluster-node-timeout": 2000}


class RedisCluster:
    """A cluster of masters without replicas, always its own; it takes two seconds before it accepts writes.

    One node is enough to see that keys of several slots are refused, three that a client follows redirections.

    Args:
        nodes: How many.
        durable: See `Server`.
        kind: Of which product; None is Valkey or, where that is not installed, Redis.

    Attributes:
        nodes: The servers, which a test may stop and start.
    """

    def __init__(self, nodes: int = 3, *, durable: bool = False, kind: type[KeyValueServer] | None = None) -> None:
        self._count: Final = nodes
        self._durable: Final = durable
        self._kind = kind
        self._stack = ExitStack()
        self.nodes: list[KeyValueServer] = []

    @property
    def url(self) -> str:
        """The URL of the first node, from which a client learns the others."""
        return self.nodes[0].url

    def flush(self) -> None:
        """Remove everything from every node."""
        for node in self.nodes:
            node.flush()

    def start(self) -> Self:
        """Start the nodes and join them; return when every one accepts writes.

        Raises:
            MissingServerError: No server is installed.
            ServerFailedError: They did not come up or together.
        """
        kind = self._kind or _installed()
        for _ in range(self._count):
            self.nodes.append(self._stack.enter_context(kind(durable=self._durable, own=True, settings=_SETTINGS)))
        bounds = [_SLOTS * number // self._count for number in range(self._count + 1)]
        for number, node in enumerate(self.nodes):
            slots = range(bounds[number], bounds[number + 1])
            node.command("CLUSTER", "ADDSLOTS", *slots)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            self.nodes[0].command("CLUSTER", "MEET", node.host, node.port)
        if not wait_until(lambda: all(map(self._is_whole, self.nodes))):
            message = f"the cluster did not form; the end of a log:\n{self.nodes[0].log[-2000:]}"
            raise ServerFailedError(message)
        return self

    def close(self) -> None:
        """Stop the nodes and remove their folders."""
        self._stack.close()
        self.nodes.clear()

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

    def _is_whole(self, node: KeyValueServer) -> bool:
        facts = node.command("CLUSTER", "INFO")
        return b"cluster_state:ok" in facts and f"cluster_known_nodes:{self._count}\r".encode() in facts


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
