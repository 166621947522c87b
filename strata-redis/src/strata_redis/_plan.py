"""Where a listing begins: at whichever filter leaves the fewest heads to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from strata_core.rows import HeadQuery
from strata_redis._calls import Call
from strata_redis._errors import unavailable
from strata_redis._index import Window, due_range, groups_of, lease_range
from strata_redis._keys import INDEX, Keys
from strata_redis._server import Server

__all__ = ["Plan", "plan"]


@attrs.frozen
class Plan:
    """How to go about a listing.

    Attributes:
        walk: The beginnings of the ranges to walk in order, merged; empty when all that is due or leased is looked up
            instead, and sorted.
        filters: The beginnings that a place must also be found with, each filter with its alternatives.
        lookup: The bounds of what is looked up.
        by_lease: Whether that is leases; else due times.
    """

    walk: Sequence[bytes]
    filters: Sequence[Sequence[bytes]]
    lookup: tuple[bytes, bytes] | None = None
    by_lease: bool = False


async def plan(server: Server, keys: Keys, query: HeadQuery, window: Window, where: str) -> Plan:
    """Return how to go about a listing.

    A query with one filter that the index has in order needs no counting.  For others every range is counted in every
    bucket, in one message; a count takes as long as finding one member.  Two kinds of ways are compared by how many
    heads they look at: to walk the shortest of the ordered ranges until the page is full, which what is due or leased
    makes longer; or to look up all that is due, or leased.
    """
    groups = groups_of(query)
    wants_due, wants_leased = query.due_until is not None, query.leased is True
    if len(groups) == 1 and not wants_due and not wants_leased:
        return Plan(groups[0], ())
    ranges = [[window.bounds(prefix) for prefix in group] for group in groups]
    ranges.append([window.bounds(b"a")])
    if query.due_until is not None:
        ranges.append([due_range(query.due_until)])
    if wants_leased:
        ranges.append([lease_range(0)])
    counts, now = await _count(server, keys, ranges, where)
    shortest = min(range(len(groups)), key=lambda at: counts[at])
    others = [group for at, group in enumerate(groups) if at != shortest]
    walk = Plan(groups[shortest], others)
    if not wants_due and not wants_leased:
        return walk
    everything, lookups = counts[len(groups)], counts[len(groups) + 1 :]
    fewest = min(lookups)
    # Of those walked, as many should pass as of all.
    walked = min(counts[shortest], query.limit * everything // max(fewest, 1) + 1)
    if walked <= fewest:
        return walk
    if query.due_until is not None and lookups[0] == fewest:
        return Plan((), groups, due_range(query.due_until))
    return Plan((), groups, lease_range(now), by_lease=True)


async def _count(
    server: Server, keys: Keys, ranges: Sequence[Sequence[tuple[bytes, bytes]]], where: str
) -> tuple[list[int], int]:
    """Return how many members are in each of the unions of ranges, and the earliest of the servers' times."""
    calls = []
    for tag in keys.tags:
        calls.append(Call(tag, (b"TIME",)))
        calls += [Call(tag, (b"ZLEXCOUNT", tag + INDEX, *bounds)) for group in ranges for bounds in group]
    answers: list[Any] = await server.read(calls)
    for answer in answers:
        if isinstance(answer, Exception):
            raise unavailable(answer, where)
    width = 1 + sum(len(group) for group in ranges)
    now = min(int(answers[at][0]) * 1_000_000 + int(answers[at][1]) for at in range(0, len(answers), width))
    counts, at = [], 1
    for group in ranges:
        counts.append(sum(sum(answers[at + n :: width]) for n in range(len(group))))
        at += len(group)
    return counts, now
