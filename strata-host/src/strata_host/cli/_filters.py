"""Filters of a listing, from text."""

from __future__ import annotations

from collections.abc import Iterable

import click

__all__ = ["graph_filter", "metadata_filter"]


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
