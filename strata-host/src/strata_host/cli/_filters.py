"""Filters of a listing: the options, and what they mean."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import click

from strata_core.records import ThreadQuery, ThreadState

__all__ = ["filter_options", "graph_filter", "metadata_filter"]


def metadata_filter(_ctx: click.Context, _parameter: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """Return ``key=value`` pairs as a mapping.

    Raises:
        click.BadParameter: One has no ``=``, an empty key, or the key of another one with another value.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"{pair!r} is not of the form KEY=VALUE")
        if found.setdefault(key, value) != value:
            raise click.BadParameter(f"{key!r} is given twice with different values, which no thread can match")
    return found


def graph_filter(_ctx: click.Context, _parameter: click.Parameter, graph: str | None) -> tuple[str | None, str | None]:
    """Return the ID and version of ``id[@version]``; the version is what follows the last ``@``.

    Raises:
        click.BadParameter: The ID or the version is empty.
    """
    if graph is None:
        return None, None
    graph_id, separator, version = graph.rpartition("@")
    if not separator:
        graph_id = graph
    if not graph_id or (separator and not version):
        raise click.BadParameter(f"{graph!r} is not of the form ID[@VERSION]")
    return graph_id, version if separator else None


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--status`, `--meta` and `--graph`, and pass them as its argument `filters`, a `ThreadQuery`."""

    @click.option(
        "--status",
        "states",
        multiple=True,
        type=click.Choice([state.value for state in ThreadState]),
        help="Only threads in this state; repeat it for several.",
    )
    @click.option(
        "--meta",
        "metadata",
        multiple=True,
        metavar="KEY=VALUE",
        callback=metadata_filter,
        help="Only threads with this metadata; repeat it for pairs that must all be there.",
    )
    @click.option(
        "--graph",
        metavar="ID[@VERSION]",
        callback=graph_filter,
        help="Only threads of this graph, or of one version of it.",
    )
    @functools.wraps(command)
    def with_filters(
        *args: Any,
        states: Iterable[str],
        metadata: dict[str, str],
        graph: tuple[str | None, str | None],
        **kwargs: Any,
    ) -> Any:
        filters = ThreadQuery(
            states=frozenset(map(ThreadState, states)) or None,
            metadata=metadata,
            graph_id=graph[0],
            graph_version=graph[1],
        )
        return command(*args, filters=filters, **kwargs)

    return with_filters
