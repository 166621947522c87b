"""What a thread is listed by, as a row says it, in the forms in which the database takes it."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import attrs

from strata_core.errors import InvalidInputError
from strata_core.rows import NewRow
from strata_postgres._facets import LEASED, STATES, facets_of
from strata_postgres._function import DIGEST_SIZE

__all__ = ["ENCODE", "RowFacts", "escaped", "facts_of"]

ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_FEW_PAIRS: Final = 8
"""Facts of no more metadata pairs are remembered: what a thread is listed by seldom changes from save to save."""


@attrs.frozen(eq=False)
class RowFacts:
    """The facts of a row.

    Attributes:
        text: A JSON object of all of them, but for its last brace.
        literal: The same, as it stands within the literal of an array.
        digest: Of metadata, graph and due time.
        state: The number of the state.
        facets: The facets as the literal of an array, while no lease is held.
        leased: The same under a lease.
        columns: Due time, graph ID, graph version and metadata, each as text.
    """

    text: str
    literal: str
    digest: bytes
    state: bytes
    facets: bytes
    leased: bytes
    columns: tuple[bytes | None, bytes | None, bytes | None, bytes | None]


def escaped(text: str) -> str:
    """Return a text as it stands in quotation marks within the literal of an array."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def facts_of(row: NewRow) -> RowFacts:
    """Return the facts of a row.

    Raises:
        InvalidInputError: Its state is not known.
    """
    if len(row.metadata) > _FEW_PAIRS:
        return _facts(row)
    return _remembered(tuple(row.metadata.items()), row.graph_id, row.graph_version, row.due, row.state)


@lru_cache(maxsize=1024)
def _remembered(
    metadata: tuple[tuple[str, str], ...], graph_id: str | None, graph_version: str | None, due: int | None, state: str
) -> RowFacts:
    return _facts(NewRow("", True, b"", b"", state, state, 0, due, graph_id, graph_version, dict(metadata)))


def _facts(row: NewRow) -> RowFacts:
    state = STATES.get(row.state)
    if state is None:
        raise InvalidInputError(
            "row.state", f"is {row.state!r}, which this release does not know; upgrade strata-postgres"
        )
    facts: dict[str, Any] = {
        "due": row.due,
        "graph_id": row.graph_id,
        "graph_version": row.graph_version,
        "metadata": dict(sorted(row.metadata.items())),
    }
    digest = blake2b(ENCODE(facts).encode(), digest_size=DIGEST_SIZE).digest()
    if not row.metadata:
        del facts["metadata"]
    facets = facets_of(row)
    text = ENCODE(facts | {"state": state, "facets": facets})[:-1]
    listed = ",".join(map(str, facets)).encode()
    return RowFacts(
        text,
        escaped(text),
        digest,
        b"%d" % state,
        b"{%b}" % listed,
        b"{%b,%d}" % (listed, LEASED),
        (
            None if row.due is None else b"%d" % row.due,
            None if row.graph_id is None else row.graph_id.encode(),
            None if row.graph_version is None else row.graph_version.encode(),
            ENCODE(facts["metadata"]).encode() if row.metadata else None,
        ),
    )
