"""What the index of a bucket holds, and which ranges of it a listing looks at.

The index is one sorted set whose members all have the score 0, so that they stand in the order of their bytes.  A
thread has a member for everything that it can be found by; each ends in its *place*: the time of its last update as 16
digits (`moment`), and its ID.  Of a running thread the last digits of the time are 0 (`LAG_DIGITS`), so that its
members move once in a second and not with every save; listings set the order right.

    a<place>                        every thread with rows
    s<state> NUL <place>            its state
    m<key> NUL <value> NUL <place>  each pair of its metadata, but for those of the engine, which change with each save
    g<graph> NUL <place>            its graph
    v<graph> NUL <version> NUL <place>
    d<due><place>                   its due time, by `moment`
    l<expiry><thread ID>            its lease, live or not: the expiry as 17 digits
    r<place>                        a head without rows, at 0
    x<deadline><thread ID>          a thread that will expire by itself

So every range but the last ones is in the order of listings, and whether a thread passes another filter is one look-up
of a member that ends in the same place.  Neither IDs, states nor metadata have a NUL.  The members are made by the
script that commits.
"""

from __future__ import annotations

from typing import Final

import attrs

from strata_core.rows import HeadQuery
from strata_redis._keys import LATEST, moment

__all__ = [
    "DUE_CUT",
    "END",
    "LEASE_CUT",
    "RUNNING",
    "UNINDEXED",
    "Window",
    "beginning",
    "due_range",
    "groups_of",
    "lease_range",
]

END: Final = b"g"
"""Comes after every digit that a place can begin with."""
DUE_CUT: Final = 17
"""How many bytes stand before the place in a member about a due time."""
LEASE_CUT: Final = 18
"""How many bytes stand before the thread ID in a member about a lease or a deadline."""
LAG_DIGITS: Final = 5
"""How many of a time's 16 digits are 0 in the place of a running thread.

So it stands less than 1.05 seconds before its time of update.  Whoever saves less often than that can bear to have its
members moved; and for a page no more threads are looked at in vain than were saved in the second before its last one.
"""
RUNNING: Final = b"srunning\0"
"""What a member begins with of each running thread."""
UNINDEXED: Final = "strata."
"""How the keys of metadata begin that are not in the index."""


@attrs.frozen
class Window:
    """A span of places.

    Attributes:
        lower: The first one; inclusive.
        upper: The one after the last.
    """

    lower: bytes
    upper: bytes

    @classmethod
    def of(cls, query: HeadQuery) -> Window:
        """Return the span that a query asks for."""
        lowers, uppers = [b""], [END]
        if query.updated_after is not None:
            lowers.append(END if query.updated_after >= LATEST else moment(query.updated_after + 1).encode())
        if query.updated_before is not None:
            uppers.append(moment(query.updated_before).encode())
        if query.past is not None:
            place = moment(query.past[0]).encode() + query.past[1].encode()
            if query.oldest_first:
                lowers.append(place + b"\0")  # the next place there can be
            else:
                uppers.append(place)
        return cls(max(lowers), min(uppers))

    @property
    def is_empty(self) -> bool:
        """Whether no place can be in it."""
        return self.lower >= self.upper

    def bounds(self, prefix: bytes) -> tuple[bytes, bytes]:
        """Return the bounds of a range of the index, as commands take them."""
        return b"[" + prefix + self.lower, b"(" + prefix + self.upper


def beginning(place: bytes) -> bytes:
    """Return the first place at which a running thread may stand that was updated at the time of a place, or later."""
    return place[: 16 - LAG_DIGITS] + b"0" * LAG_DIGITS if len(place) >= 16 else place


def groups_of(query: HeadQuery) -> list[list[bytes]]:
    """Return the filters of a query that the index knows by place, each as its alternatives; at least one.

    The other filters are checked on the heads.
    """
    if query.rowless:
        return [[b"r"]]
    groups = []
    if query.states is not None:
        groups.append([b"s%b\0" % state.encode() for state in sorted(query.states)])
    groups += [
        [b"m%b\0%b\0" % (key.encode(), value.encode())]
        for key, value in query.metadata.items()
        if not key.startswith(UNINDEXED)
    ]
    if query.graph_id is not None:
        graph = query.graph_id.encode()
        if query.graph_version is None:
            groups.append([b"g%b\0" % graph])
        else:
            groups.append([b"v%b\0%b\0" % (graph, query.graph_version.encode())])
    return groups or [[b"a"]]


def due_range(until: int) -> tuple[bytes, bytes]:
    """Return the bounds of what is due at a time."""
    return b"[d", b"(d" + (END if until >= LATEST else moment(until + 1).encode())


def lease_range(now: int) -> tuple[bytes, bytes]:
    """Return the bounds of the leases that are live at a time."""
    return b"(l%017dg" % now, b"(m"
