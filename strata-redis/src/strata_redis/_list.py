"""Listing heads: places from the index, then the heads that stand there.

The index is walked bucket by bucket, so the places of one listing are not of one moment, and a thread may have moved
or gone when its head is read.  What counts is the head: it is returned where it stands now, if it still matches and its
place is not behind the last one that was walked to; there a later page finds it.  A place without a head belongs to a
thread that expired, or was purged between the two reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from strata_core.rows import Head, HeadQuery, matches
from strata_redis._errors import unavailable
from strata_redis._heads import heads_call, heads_from
from strata_redis._index import DUE_CUT, LEASE_CUT, Window
from strata_redis._keys import Keys, moment
from strata_redis._plan import Plan, plan
from strata_redis._server import Server
from strata_redis._walk import Walk, read_all

__all__ = ["list_heads"]

_PLACE: Final = 16
"""Bytes of the time in a place."""
AT_ONCE: Final = 500
"""How many heads are read at once, at most."""


async def list_heads(server: Server, keys: Keys, query: HeadQuery, where: str) -> list[Head]:
    """Return heads as `RowBackend.list_heads` promises."""
    window = Window.of(query)
    if window.is_empty or query.limit < 1 or (query.states is not None and not query.states):
        return []
    way = await plan(server, keys, query, window, where)
    listing = _Listing(server, keys, query, where)
    if way.lookup is None:
        walk = Walk(server, keys, way.walk, way.filters, window, oldest_first=query.oldest_first, where=where)
        await listing.follow(walk)
    else:
        await listing.look_up(way, window)
    return listing.page()


class _Listing:
    """Collects the heads of one page."""

    def __init__(self, server: Server, keys: Keys, query: HeadQuery, where: str) -> None:
        self._server = server
        self._keys = keys
        self._query = query
        self._where = where
        self._found: dict[str, Head] = {}

    def page(self) -> list[Head]:
        """Return what was found, in order."""
        heads = sorted(self._found.values(), key=_place_of, reverse=not self._query.oldest_first)
        return heads[: self._query.limit]

    async def follow(self, walk: Walk) -> None:
        """Walk until the page is full or the ranges end."""
        wanted, looked_at = self._query.limit, 0
        while True:
            wanted = min(wanted, AT_ONCE)
            places = await walk.take(wanted)
            await self._collect(places)
            looked_at += len(places)
            missing = self._query.limit - len(self._found)
            if missing <= 0 or len(places) < wanted:
                return
            # As few pass as before; but a page that nothing passed yet must not look at everything at once.
            wanted = missing * looked_at // max(len(self._found), looked_at // 8, 1) + 1

    async def look_up(self, way: Plan, window: Window) -> None:
        """Find all that is due or leased, and sort it."""
        assert way.lookup is not None
        if way.by_lease:
            threads = await read_all(self._server, self._keys, way.lookup, LEASE_CUT, (), self._where)
            for at in range(0, len(threads), AT_ONCE):
                for head in await self._read(threads[at : at + AT_ONCE]):
                    self._take(head)
            return
        places = await read_all(self._server, self._keys, way.lookup, DUE_CUT, way.filters, self._where)
        places = [place for place in places if window.lower <= place < window.upper]
        places.sort(reverse=not self._query.oldest_first)
        at = 0
        while at < len(places) and (missing := self._query.limit - len(self._found)) > 0:
            wanted = min(missing, AT_ONCE)
            await self._collect(places[at : at + wanted])
            at += wanted

    async def _collect(self, places: Sequence[bytes]) -> None:
        """Read the heads at places that were walked to in order, and keep those that belong to the page."""
        if not places:
            return
        last = places[-1]
        for head in await self._read([place[_PLACE:] for place in places]):
            place = _place_of(head)
            if place <= last if self._query.oldest_first else place >= last:
                self._take(head)

    def _take(self, head: Head) -> None:
        if matches(head, self._query, head.now):
            self._found[head.thread_id] = head

    async def _read(self, threads: Iterable[bytes]) -> list[Head]:
        buckets: dict[int, list[bytes]] = {}
        for thread in threads:
            buckets.setdefault(self._keys.bucket(thread), []).append(thread)
        calls = [heads_call(self._keys, bucket, group, records=True) for bucket, group in buckets.items()]
        heads: list[Head] = []
        for answer, group in zip(await self._server.read(calls), buckets.values(), strict=True):
            if isinstance(answer, Exception):
                raise unavailable(answer, self._where)
            heads += [head for head in heads_from(answer, group) if head is not None]
        return heads


def _place_of(head: Head) -> bytes:
    return moment(head.updated).encode() + head.thread_id.encode()
