"""Which function commits a batch, and with which arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from psycopg.pq import Format

from strata_core.rows import ANY, NOTHING, Commit, Drop, NewRow, Take
from strata_postgres._commit import BEYOND, CALL, FORMATS, arguments, more_of
from strata_postgres._row_facts import facts_of

__all__ = ["Call", "Calls"]

_TEXT, _BYTES = Format.TEXT, Format.BINARY
# Texts that a user chose go as bytes too: as text they would end before a NUL, and not be refused.
_COMMON: Final = (_BYTES, _BYTES, _TEXT, _TEXT, _TEXT, _TEXT, _BYTES, _BYTES, _BYTES, _BYTES)
_LISTED: Final = (*_COMMON, _TEXT, _TEXT, _TEXT, _BYTES, _BYTES, _TEXT)
_LEASED: Final = (*_LISTED, _BYTES, _TEXT)


@attrs.define(eq=False)
class Call:
    """A statement with its arguments.

    Attributes:
        statement: With ``$1`` and so on; what it returns, `outcomes` reads.
        values: The arguments.
        formats: Of each.
        order: Of the items that the answer speaks of, their positions in the batch.
    """

    statement: bytes
    values: Sequence[bytes | None]
    formats: Sequence[Format]
    order: Sequence[int]


class Calls:
    """The calls of one schema.

    Args:
        schema: Its name, quoted.
    """

    def __init__(self, schema: str) -> None:
        self._batch = CALL.replace("{s}", schema).encode()
        self._first, self._next, self._last = (
            f"SELECT {schema}.strata_commit_{kind}_1({','.join(f'${each}' for each in range(1, count + 1))})".encode()
            for kind, count in (("first", len(_LEASED)), ("next", len(_COMMON)), ("last", len(_LISTED)))
        )

    def of(self, batch: Sequence[Commit]) -> Call:
        """Return the call that commits a batch: that of `_alone`, where a save comes alone and one seems to fit.

        Raises:
            InvalidInputError: Two commits are of one thread, or a state is not known.
        """
        if len(batch) == 1:
            (commit,) = batch
            row = commit.row
            if row is not None and not (commit.blobs or commit.external or commit.erase):
                call = self._alone(commit, row)
                if call is not None:
                    return call
        order, values = arguments(batch)
        return Call(self._batch, values, FORMATS, order)

    def _alone(self, commit: Commit, row: NewRow) -> Call | None:
        lease = commit.lease
        if type(lease) is Take:
            if commit.token or commit.after >= 0 or lease.closing or lease.ttl <= 0:
                return None
            facts = facts_of(row)
            taken = (lease.owner.encode(), b"%d" % lease.ttl)
            values = (*_common(commit, row), facts.state, facts.leased, *facts.columns, *taken)
            return Call(self._first, values, _LEASED, _ALONE)
        if type(lease) is Drop:
            if not commit.token:
                return None
        elif lease is not None:
            return None
        elif commit.after == NOTHING and not commit.token:
            facts = facts_of(row)
            values = (*_common(commit, row), facts.state, facts.facets, *facts.columns, b"", b"0")
            return Call(self._first, values, _LEASED, _ALONE)
        elif row.state == "running":
            return Call(self._next, _common(commit, row), _COMMON, _ALONE)
        elif commit.token:
            return None
        if row.state == "running":
            return None
        facts = facts_of(row)
        return Call(self._last, (*_common(commit, row), facts.state, facts.facets, *facts.columns), _LISTED, _ALONE)


_ALONE: Final = range(1)


def _common(commit: Commit, row: NewRow) -> tuple[bytes | None, ...]:
    facts = facts_of(row)
    after, token = commit.after, commit.token
    head = commit.write_id + facts.digest
    return (
        commit.thread_id.encode(),
        head if after == ANY else head + commit.after_id,
        b"%d" % min(after, BEYOND),
        b"%d" % (token if abs(token) < BEYOND else -1),
        b"1" if row.whole else b"0",
        b"%d" % row.updated,
        row.version.encode(),
        f"{facts.text}{more_of(commit)}}}".encode(),
        row.envelope,
        row.body,
    )
