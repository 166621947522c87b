"""Listing heads: places from the index, then the heads that stand there.

The index is walked bucket by bucket, so the places of one listing are not of one moment, and a thread may have moved or
gone when its head is read; and a running one stands up to a second too early (see `strata_redis._index`).  What counts
is the head: it is taken with its own time if it matches, and the walk goes on until nothing that stands behind can
belong to the page.  Oldest first, that is when the page's last head is not behind where the walk is; running threads
that stand before the first place are looked at in advance.  Newest first, running threads that stand up to a second
behind are looked at afterwards.  A place without a head belongs to a thread that expired, or was purged between the two
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from strata_core.rows import Head, HeadQuery, matches
from strata_redis._errors import unavailable
from strata_redis._heads import heads_call, heads_from
from strata_redis._index import DUE_CUT, LEASE_CUT, RUNNING, Window, beginning, groups_of
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
        await listing.follow(way, window)
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
        self._up = query.oldest_first
        self._lags = not query.rowless and (query.states is None or "running" in query.states)
        self._found: dict[str, Head] = {}

    def page(self) -> list[Head]:
        """Return what was found, in order."""
        heads = sorted(self._found.values(), key=_place_of, reverse=not self._up)
        return heads[: self._query.limit]

    async def follow(self, way: Plan, window: Window) -> None:
        """Walk until the page is full or the ranges end; then, or before, to running threads that stand too early."""
        if self._up and self._lags:
            await self._run_through(Window(beginning(window.lower), window.lower))
        walk = self._walk(way.walk, way.filters, window)
        wanted, looked_at, extra = self._query.limit, 0, 2
        while True:
            wanted = min(wanted, AT_ONCE)
            places = await walk.take(wanted)
            await self._collect(places)
            looked_at += len(places)
            if len(places) < wanted:
                reached = window.lower
                break
            reached, edge = places[-1], self._edge()
            if edge is not None and (edge <= reached if self._up else edge >= reached):
                break
            if edge is None:
                # As few pass as before; but a page that nothing passed yet must not look at everything at once.
                missing = self._query.limit - len(self._found)
                wanted = missing * looked_at // max(len(self._found), looked_at // 8, 1) + 1
            else:
                wanted = extra = 2 * extra
        if not self._up and self._lags:
            await self._run_through(Window(beginning(max(self._edge() or b"", window.lower)), reached))

    async def look_up(self, way: Plan, window: Window) -> None:
        """Find all that is due or leased, and sort it."""
        assert way.lookup is not None
        if way.by_lease:
            threads = await read_all(self._server, self._keys, way.lookup, LEASE_CUT, (), self._where)
            for at in range(0, len(threads), AT_ONCE):
                self._take(await self._read(threads[at : at + AT_ONCE]))
            return
        places = await read_all(self._server, self._keys, way.lookup, DUE_CUT, way.filters, self._where)
        lower = beginning(window.lower) if self._lags else window.lower
        places = [place for place in places if lower <= place < window.upper]
        places.sort(reverse=not self._up)
        while places:
            if (edge := self._edge()) is not None and self._is_past(places[0], edge):
                return
            wanted = min(max(self._query.limit - len(self._found), 16), AT_ONCE)
            await self._collect(places[:wanted])
            del places[:wanted]

    def _edge(self) -> bytes | None:
        """Return the place of the page's last head by what was found; None while the page is not full."""
        if len(self._found) < self._query.limit:
            return None
        return _place_of(self.page()[-1])

    def _is_past(self, place: bytes, edge: bytes) -> bool:
        """Tell whether nothing at a place, or behind it, belongs to a page that ends at `edge`."""
        if self._up:
            return place > edge
        return place < (beginning(edge) if self._lags else edge)

    async def _run_through(self, window: Window) -> None:
        """Collect the running threads that stand in a span of places."""
        if window.is_empty:
            return
        filters = [group for group in groups_of(self._query) if group != [b"a"] and RUNNING not in group]
        walk = self._walk([RUNNING], filters, window)
        while places := await walk.take(AT_ONCE):
            await self._collect(places)
            if len(places) < AT_ONCE:
                return

    def _walk(self, prefixes: Sequence[bytes], filters: Sequence[Sequence[bytes]], window: Window) -> Walk:
        return Walk(self._server, self._keys, prefixes, filters, window, oldest_first=self._up, where=self._where)

    async def _collect(self, places: Sequence[bytes]) -> None:
        """Read the heads at places, and keep those that pass."""
        if places:
            self._take(await self._read([place[_PLACE:] for place in places]))

    def _take(self, heads: Iterable[Head]) -> None:
        for head in heads:
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
