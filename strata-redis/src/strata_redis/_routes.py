"""Which server a call goes to: the only one, or the one that the Sentinels call master."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from strata_redis._address import Address
from strata_redis._calls import Answer, Lost, ServerError
from strata_redis._node import Node, NodeMaker

__all__ = ["Route", "Sentinels", "Single", "Words", "is_stale"]

Words = tuple[bytes, Sequence[bytes]]
"""A hash tag, and a command on keys with that tag."""


class Route(Protocol):
    """Takes commands to the servers that have their keys."""

    async def ask(self, commands: Sequence[Words], *, writes: bool = False) -> list[Answer]:
        """Return an answer for each command; commands of one server go in one message, in order.

        Where they write, each server's replicas may have to receive that: see `Node.ask`.  A command that a server
        passed on to another one had not been done; it is sent there.  No other is sent twice.
        """
        ...

    async def close(self) -> None:
        """Disconnect from every server."""
        ...


class Single:
    """One server for everything."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def ask(self, commands: Sequence[Words], *, writes: bool = False) -> list[Answer]:
        return await self._node.ask([words for _, words in commands], writes=writes)

    async def close(self) -> None:
        await self._node.close()


class Sentinels:
    """The server that a majority of Sentinels has made master, asked for again when it is none any more.

    Args:
        addresses: Of the Sentinels.
        name: By which they know the master.
        make_sentinel: Makes a Sentinel.
        make_node: Makes the master.
    """

    def __init__(self, addresses: Sequence[Address], name: str, make_sentinel: NodeMaker, make_node: NodeMaker) -> None:
        self._name = name
        self._sentinels = [make_sentinel(address) for address in addresses]
        self._make_node = make_node
        self._master: Node | None = None
        self._lock = asyncio.Lock()

    async def ask(self, commands: Sequence[Words], *, writes: bool = False) -> list[Answer]:
        master = self._master
        if master is None:
            async with self._lock:
                master = self._master
                if master is None:
                    found = await self._find()
                    if isinstance(found, Lost):
                        return [found] * len(commands)
                    master = self._master = found
        answers = await master.ask([words for _, words in commands], writes=writes)
        if any(is_stale(answer) for answer in answers) and self._master is master:
            self._master = None
            await master.close()
        return answers

    async def _find(self) -> Node | Lost:
        reasons = []
        for sentinel in list(self._sentinels):
            (answer,) = await sentinel.ask([(b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self._name.encode())])
            if isinstance(answer, list) and len(answer) == 2:
                self._sentinels.remove(sentinel)  # it answers: ask it first the next time
                self._sentinels.insert(0, sentinel)
                host, port = answer
                return self._make_node(Address(bytes(host).decode(), int(port)))  # type: ignore[arg-type]  # bytes
            reasons.append(f"{sentinel.address}: {'knows no such master' if answer is None else str(answer)}")
        return Lost(ConnectionError(f"no Sentinel names a master {self._name!r} ({'; '.join(reasons)})"), sent=False)

    async def close(self) -> None:
        master, self._master = self._master, None
        for node in ([] if master is None else [master]) + self._sentinels:
            await node.close()


def is_stale(answer: Answer) -> bool:
    """Tell whether the server is away, or no master any more."""
    if isinstance(answer, Lost):
        return not answer.busy
    return isinstance(answer, ServerError) and "READONLY" in str(answer)
