"""Filters that select other threads, one promise each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import attrs
from mutant_kit import breaks
from mutants_listing import _Queries

from strata_core.memory import MemoryBackend
from strata_core.records import ThreadQuery
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused


@breaks("list-4")
class TakesNoStatesForAll(_Queries):
    """Takes an empty set of states for no filter."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, states=query.states or None)


@breaks("list-5")
class ComparesMetadataWithoutCase(MemoryBackend):
    """Finds metadata as a case-insensitive collation does."""

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        wide = attrs.evolve(query, metadata={}, limit=10_000)
        wanted = {(key, value.lower()) for key, value in query.metadata.items()}
        heads = await super().list_heads(wide)
        found = [h for h in heads if wanted <= {(key, value.lower()) for key, value in h.metadata.items()}]
        return found[: query.limit]


@breaks(
    "list-6",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class ListsToTheEndInclusive(_Queries):
    """Takes the upper end of a time span for a part of it."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        try:
            later = query.updated_before and query.updated_before + timedelta(microseconds=1)
        except (OverflowError, TypeError):
            return query
        return attrs.evolve(query, updated_before=later)


@breaks(
    "list-7",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class IgnoresAVersionWithoutAGraph(_Queries):
    """Looks at the version of a graph only when the graph is named too."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        text = query.graph_version in ("1", "2", "3")
        return attrs.evolve(query, graph_version=None) if text and query.graph_id is None else query


@breaks(
    "list-8",
    also={
        "list-10": "the thread that passes is due now",
    },
)
class LeavesOutWhatIsDueNow(_Queries):
    """Takes the end of what is due for excluded, as for the other times."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        try:
            earlier = query.due_before and query.due_before - timedelta(microseconds=1)
        except (OverflowError, TypeError):
            return query
        return attrs.evolve(query, due_before=earlier)


@breaks(
    "list-9",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class TakesNotLeasedForAny(_Queries):
    """Filters by lease only when leased threads are wanted."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, leased=None) if query.leased is False else query


@breaks("list-10")
class UsesOneIndexAtMost(_Queries):
    """Leaves the metadata out when there is a graph to look for."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, metadata={}) if query.graph_id is not None else query


@breaks(
    "list-5",
    also={
        "list-10 list-11": "filters by metadata too",
        "purge-8": "finds the thread that is kept by metadata too",
        "row-10": "lists by metadata what was erased and started over",
        "rule-1": "lists by metadata",
    },
)
class IndexesNoMetadata(MemoryBackend):
    """Keeps metadata in the record, where no listing finds it."""

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        for commit in batch:
            if commit.row is not None:
                commit.row.metadata = {}
        return await super().commit(batch)


@breaks(
    "list-7",
    also={
        "list-10": "one thread fails this filter alone",
    },
)
class IgnoresTheGraphVersion(_Queries):
    """Leaves out a filter that it does not know."""

    def query(self, query: ThreadQuery) -> ThreadQuery:
        return attrs.evolve(query, graph_version=None) if query.graph_version in ("1", "2", "3") else query
