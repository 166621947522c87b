"""`strata plugins`: what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strata_host.cli._source import json_option
from strata_host.cli._text import phrase, word
from strata_host.cli.output import Role, Span, output, print_json

if TYPE_CHECKING:
    from strata_core.plugins import PluginInfo

__all__ = ["plugins"]

_HEADER = ("KIND", "NAME", "DISTRIBUTION", "STATUS", "DETAIL")


@click.command()
@json_option
def plugins(as_json: bool) -> None:
    """Show the installed plugins, and what is wrong with them.

    Also those that do not load, and why.  A store or blob plugin is named by the URL scheme that it serves.
    """
    from strata_core.plugins import list_plugins

    found = list_plugins()
    if as_json:
        print_json({"plugins": [_json(plugin) for plugin in found]})
        return
    out = output()
    if found:
        out.table(_HEADER, [_row(plugin) for plugin in found])
    else:
        out.line([Span("no plugin is installed")])


def _json(plugin: PluginInfo) -> dict[str, str]:
    return {
        "kind": plugin.kind.value,
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "status": plugin.status.value,
        "detail": plugin.detail,
    }


def _row(plugin: PluginInfo) -> tuple[tuple[Span], ...]:
    status = plugin.status.value
    texts = (plugin.kind.value, word(plugin.name), word(f"{plugin.distribution}@{plugin.version}"))
    detail = phrase(plugin.detail) if plugin.detail else "-"
    return (
        *((Span(text),) for text in texts),
        (Span(status, Role.ADDED if status == "ok" else Role.REMOVED),),
        (Span(detail),),
    )
