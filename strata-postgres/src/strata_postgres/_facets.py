"""What threads are listed by: states as small integers, facets as 64-bit integers.

A facet is a fixed number, or a hash: of a metadata pair, a graph's ID, its version, or both.  Threads whose facets have
the same hash by chance, or by somebody's intent, are told apart when they are listed: each candidate's head is looked
at.  All of this is part of the format: never renumbered, never hashed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from strata_core.rows import NewRow

__all__ = [
    "ALL",
    "DUE",
    "DUE_AT",
    "LAG",
    "LEASED",
    "ROWLESS",
    "RUNNING",
    "STATES",
    "STATE_NAMES",
    "facets_of",
    "graph_facet",
    "graph_version_facet",
    "pair_facet",
    "version_facet",
]

ROWLESS: Final = 0
"""The state of a head without rows."""
STATES: Final = {
    "interrupted": 1,
    "failed": 2,
    "cancelled": 3,
    "running": 4,
    "completed": 5,
    "ended": 6,
    "resumed": 7,
}
"""How a thread's state is kept."""
STATE_NAMES: Final = {number: state for state, number in STATES.items()} | {ROWLESS: ""}
RUNNING: Final = STATES["running"]

ALL: Final = 0
"""Every head, also one without rows."""
LEASED: Final = 1
"""Threads with a lease, live or expired; only the database adds it."""
DUE: Final = 2
"""Threads that are due at some time."""
DUE_AT: Final = 3
"""The same, placed by that time."""
_FIXED: Final = 16
"""As many numbers, from 0 on, are kept for fixed facets."""

LAG: Final = 1_000_000
"""By how many microseconds, at most, the place of a running thread is before its time of update.

A second: a thread that saves less often than that can bear to have its entries moved, and for a page no more threads
are looked at in vain than saved in the second before its last one.
"""


@lru_cache(maxsize=8192)
def _hashed(kind: bytes, first: str, second: str = "") -> int:
    digest = blake2b(b"%b\0%b\0%b" % (kind, first.encode(), second.encode()), digest_size=8).digest()
    number = int.from_bytes(digest, "big", signed=True)
    return number if not 0 <= number < _FIXED else number - _FIXED


def pair_facet(key: str, value: str) -> int:
    """Return the facet of threads with a metadata pair; neither text holds a NUL."""
    return _hashed(b"pair", key, value)


def graph_facet(graph_id: str) -> int:
    """Return the facet of threads of a graph."""
    return _hashed(b"graph", graph_id)


def version_facet(graph_version: str) -> int:
    """Return the facet of threads of graphs of this version."""
    return _hashed(b"version", graph_version)


def graph_version_facet(graph_id: str, graph_version: str) -> int:
    """Return the facet of threads of a graph in this version."""
    return _hashed(b"graph version", graph_id, graph_version)


def facets_of(row: NewRow) -> list[int]:
    """Return the facets of a thread with this row as its latest, in order, without `LEASED`."""
    return sorted(set(_facets(row)))


def _facets(row: NewRow) -> Iterator[int]:
    yield ALL
    for key, value in row.metadata.items():
        yield _hashed(b"pair", key, value)
    if row.graph_id is not None:
        yield graph_facet(row.graph_id)
        if row.graph_version is not None:
            yield graph_version_facet(row.graph_id, row.graph_version)
    if row.graph_version is not None:
        yield version_facet(row.graph_version)
    if row.due is not None:
        yield DUE
        yield DUE_AT
