"""The row boundary: what a database must do so that `strata_core.store.RowStore` can do the rest.

A plugin author implements `RowBackend`: open and close, one write primitive and four reads.  Everything else of a
store (encoding, deltas, offload, duplicates, batching, listing pages, purge) is written once, in core, on top of it.

The write primitive takes a `Commit`: one atomic step on one thread, with what must hold and what then changes.
`decide` is its whole rule book, a pure function of the commit, the thread's `Head`, the time and a token counter.  A
backend that can run Python inside its transaction calls it there; others transcribe it, and the conformance suite holds
them against it.
"""

from strata_core.rows._backend import Batching, RowBackend
from strata_core.rows._commit import (
    ANY,
    NOTHING,
    WRITE_ID_SIZE,
    WRITE_IDS_KEPT,
    Commit,
    Committed,
    Drop,
    Extend,
    Refusal,
    Refused,
    Take,
    new_write_id,
)
from strata_core.rows._decide import decide
from strata_core.rows._head import RESERVATION, Head, NewRow, Row
from strata_core.rows._query import HeadQuery, matches

__all__ = [
    "ANY",
    "NOTHING",
    "WRITE_IDS_KEPT",
    "WRITE_ID_SIZE",
    "Batching",
    "Commit",
    "Committed",
    "Drop",
    "Extend",
    "Head",
    "HeadQuery",
    "NewRow",
    "RESERVATION",
    "Refusal",
    "Refused",
    "Row",
    "RowBackend",
    "Take",
    "decide",
    "matches",
    "new_write_id",
]
