"""Walks ranges of all buckets in the order of listings, merged, and reads little more than it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from strata_redis._calls import WALK, Call
from strata_redis._errors import unavailable
from strata_redis._index import Window
from strata_redis._keys import INDEX, Keys
from strata_redis._server import Server

__all__ = ["Lane", "Walk", "read_all", "walk_call"]

ROOM: Final = 4000
"""How many members a script looks at before it lets others work."""


class Lane:
    """One range of one bucket: what was found in it, and how far it has been walked.

    Attributes:
        bucket: The bucket.
        prefix: What every member of the range begins with.
        bounds: Of what has not been walked.
        reached: The last place that was looked at; empty before the first.
        is_over: Whether the end was reached.
    """

    def __init__(self, bucket: int, prefix: bytes, bounds: tuple[bytes, bytes]) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self.bounds = bounds
        self.reached = b""
        self.is_over = False


class Walk:
    """Gives places in order.

    Args:
        server: Where the index is.
        keys: The store's keys.
        prefixes: The beginnings of the ranges, each of which every bucket has.
        filters: What a place must also be found with.
        window: The span of places.
        oldest_first: The order.
        where: The store, for messages.
    """

    def __init__(
        self,
        server: Server,
        keys: Keys,
        prefixes: Sequence[bytes],
        filters: Sequence[Sequence[bytes]],
        window: Window,
        *,
        oldest_first: bool,
        where: str,
    ) -> None:
        self._server = server
        self._keys = keys
        self._filters = filters
        self._up = oldest_first
        self._where = where
        self._lanes = [
            Lane(bucket, prefix, window.bounds(prefix)) for prefix in prefixes for bucket in range(len(keys.tags))
        ]
        self._found: list[bytes] = []  # places in order that were not given yet

    async def take(self, count: int) -> list[bytes]:
        """Return the next `count` places, or fewer at the end."""
        lanes = [lane for lane in self._lanes if not lane.is_over and not lane.reached]
        # A half more than each range's share: then most pages need one message, and few ranges a second one.
        share = max(1, (3 * count + len(lanes)) // (2 * len(lanes))) if lanes else 0
        while True:
            if lanes:
                await self._fill(lanes, share)
            lanes = self._in_the_way(count)
            if not lanes:
                taken, self._found = self._found[:count], self._found[count:]
                return taken
            share = (count - len(self._found)) // len(lanes) + 2 if len(self._found) < count else 2

    def _in_the_way(self, count: int) -> list[Lane]:
        """Return the ranges in which one of the next `count` places may not have been found yet."""
        unfinished = [lane for lane in self._lanes if not lane.is_over]
        if len(self._found) < count:
            return unfinished
        last = self._found[count - 1]
        return [lane for lane in unfinished if (lane.reached < last if self._up else lane.reached > last)]

    async def _fill(self, lanes: Sequence[Lane], share: int) -> None:
        calls = [
            walk_call(self._keys, lane.bucket, lane.bounds, share, len(lane.prefix), self._filters, down=not self._up)
            for lane in lanes
        ]
        answers: list[Any] = await self._server.read(calls)
        for lane, answer in zip(lanes, answers, strict=True):
            if isinstance(answer, Exception):
                raise unavailable(answer, self._where)
            _, position, found = answer
            if found:
                self._found += found.split(b"\0")
            if position:
                lower, upper = lane.bounds
                lane.bounds = (b"(" + position, upper) if self._up else (lower, b"(" + position)
                lane.reached = position[len(lane.prefix) :]
            else:
                lane.is_over = True
        self._found.sort(reverse=not self._up)


async def read_all(
    server: Server,
    keys: Keys,
    bounds: tuple[bytes, bytes],
    cut: int,
    filters: Sequence[Sequence[bytes]],
    where: str,
) -> list[bytes]:
    """Return what stands behind `cut` in every member of a range, in every bucket, in no order."""
    found: list[bytes] = []
    left = dict.fromkeys(range(len(keys.tags)), bounds)
    while left:
        calls = [walk_call(keys, bucket, rest, ROOM, cut, filters, down=False) for bucket, rest in left.items()]
        answers: list[Any] = await server.read(calls)
        for (bucket, (_, upper)), answer in zip(list(left.items()), answers, strict=True):
            if isinstance(answer, Exception):
                raise unavailable(answer, where)
            _, position, places = answer
            if places:
                found += places.split(b"\0")
            if position:
                left[bucket] = (b"(" + position, upper)
            else:
                del left[bucket]
    return found


def walk_call(
    keys: Keys,
    bucket: int,
    bounds: tuple[bytes, bytes],
    count: int,
    cut: int,
    filters: Sequence[Sequence[bytes]],
    *,
    down: bool,
) -> Call:
    """Return the call that walks one range of one bucket."""
    tag = keys.tags[bucket]
    arguments = [b"1" if down else b"0", *bounds, b"%d" % count, b"%d" % max(ROOM, count), b"%d" % cut]
    for alternatives in filters:
        arguments += (b"%d" % len(alternatives), *alternatives)
    return Call(tag, arguments, WALK, (tag + INDEX,))
