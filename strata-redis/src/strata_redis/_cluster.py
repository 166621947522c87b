"""Which node of a cluster a call goes to.

The usual driver's client is not used: it repeats commands whose answer was lost, closes connections on which others
wait for answers when a slot moves, and raises when its connections are all in use.
"""

from __future__ import annotations

import asyncio
import re
from binascii import crc_hqx
from collections.abc import Sequence
from typing import Any, Final

from strata_redis._address import Address
from strata_redis._calls import Answer, Lost, ServerError
from strata_redis._node import Node, NodeMaker
from strata_redis._routes import Words, is_stale

__all__ = ["Cluster", "slot_of"]

SLOTS: Final = 16384
_REDIRECTED: Final = re.compile(r"(?P<code>MOVED|ASK) (?P<slot>\d{1,5}) (?P<host>\S*):(?P<port>\d{1,5})", re.ASCII)
"""What a node says that has not the slot of a command; it has no name where it does not know its own."""
REDIRECTIONS: Final = 8
"""How often a command may be passed on."""


def slot_of(tag: bytes) -> int:
    """Return the slot of keys with a hash tag, given in its braces."""
    return crc_hqx(tag[1:-1], 0) % SLOTS


class Cluster:
    """The nodes of a cluster, and which of them has which slots.

    Args:
        seeds: Some of the nodes.
        make_node: Makes a node.
    """

    def __init__(self, seeds: Sequence[Address], make_node: NodeMaker) -> None:
        self._seeds = list(seeds)
        self._make_node = make_node
        self._nodes: dict[Address, Node] = {}
        self._owners: dict[int, Address] = {}
        self._ranges: list[tuple[int, int, Address]] = []
        self._is_known = False
        self._suspects: set[Address] = set()  # did not answer since the cluster was last asked
        self._lock = asyncio.Lock()

    async def ask(self, commands: Sequence[Words], *, writes: bool = False) -> list[Answer]:
        answers: list[Answer] = [None] * len(commands)
        targets: dict[int, tuple[Address, bool]] = {}
        waiting = list(range(len(commands)))
        for _ in range(REDIRECTIONS):
            if (trouble := await self._learn()) is not None:
                for at in waiting:
                    if not isinstance(answers[at], Exception):
                        answers[at] = trouble
                return answers
            groups: dict[tuple[Address, bool], list[int]] = {}
            for at in waiting:
                target = targets.pop(at, None) or (self._owner(slot_of(commands[at][0])), False)
                groups.setdefault(target, []).append(at)
            replies = await asyncio.gather(
                *(
                    self._ask_node(address, [commands[at][1] for at in group], asking=asking, writes=writes)
                    for (address, asking), group in groups.items()
                )
            )
            waiting = []
            for ((address, _), group), got in zip(groups.items(), replies, strict=True):
                for at, answer in zip(group, got, strict=True):
                    answers[at] = answer
                    if isinstance(answer, ServerError) and (said := _REDIRECTED.fullmatch(str(answer))):
                        targets[at] = self._redirected(said, address)  # it was not done
                        waiting.append(at)
                    elif is_stale(answer):
                        self._is_known = False  # a failover, perhaps: ask the cluster before the next call
                        self._suspects.add(address)
            if not waiting:
                break
            waiting.sort()
        return answers

    async def _ask_node(
        self, address: Address, commands: list[Sequence[bytes]], *, asking: bool, writes: bool
    ) -> list[Answer]:
        node = self._node(address)
        if not asking:
            return await node.ask(commands, writes=writes)
        doubled = [words for command in commands for words in ((b"ASKING",), command)]
        return (await node.ask(doubled, writes=writes))[1::2]

    def _redirected(self, said: re.Match[str], asked: Address) -> tuple[Address, bool]:
        """Return where a command is sent on to, and whether for this once."""
        address = Address(_known(said["host"], asked), int(said["port"]))
        if said["code"] == "MOVED":
            self._owners[int(said["slot"])] = address
        return address, said["code"] == "ASK"

    def _owner(self, slot: int) -> Address:
        owner = self._owners.get(slot)
        if owner is None:
            owner = next((owner for first, last, owner in self._ranges if first <= slot <= last), self._seeds[0])
            self._owners[slot] = owner
        return owner

    def _node(self, address: Address) -> Node:
        if address not in self._nodes:
            self._nodes[address] = self._make_node(address)
        return self._nodes[address]

    async def _learn(self) -> Lost | None:
        """Ask who has which slots, unless that is known; return why nobody said."""
        if self._is_known:
            return None
        async with self._lock:
            return None if self._is_known else await self._look()

    async def _look(self) -> Lost | None:
        reasons = []
        for address in sorted(dict.fromkeys([*self._nodes, *self._seeds]), key=self._suspects.__contains__):
            (answer,) = await self._node(address).ask([(b"CLUSTER", b"SLOTS")])
            if isinstance(answer, list) and answer:
                await self._take_over(answer, address)
                return None
            reasons.append(f"{address}: {answer if isinstance(answer, Exception) else 'has no slots yet'}")
        return Lost(ConnectionError(f"no node of the cluster tells its slots ({'; '.join(reasons)})"), sent=False)

    async def _take_over(self, answer: Any, asked: Address) -> None:
        ranges = []
        for first, last, master, *_ in answer:
            host = _known(bytes(master[0] or b"").decode(), asked)
            ranges.append((int(first), int(last), Address(host, int(master[1]))))
        self._ranges, self._owners, self._is_known = ranges, {}, True
        self._suspects.clear()
        masters = {address for _, _, address in ranges}
        for address in [address for address in self._nodes if address not in masters]:
            if (node := self._nodes.pop(address, None)) is not None:  # None: `close` was quicker
                await node.close()

    async def close(self) -> None:
        self._is_known = False
        while self._nodes:
            await self._nodes.popitem()[1].close()


def _known(host: str, asked: Address) -> str:
    """Return the host that a node tells, or its own where it does not know that."""
    return asked.host if host in {"", "?"} else host
