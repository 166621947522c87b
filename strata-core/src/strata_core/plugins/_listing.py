"""What is installed, and in what condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import attrs

from strata_core.errors import PluginError
from strata_core.plugins._entries import DISABLE_VARIABLE, Entry, PluginKind, disabled_names
from strata_core.plugins._set import PluginSet

__all__ = ["PluginInfo", "PluginStatus", "list_plugins"]


class PluginStatus(StrEnum):
    """The condition of an installed plugin."""

    OK = "ok"
    BLOCKED = "blocked"
    BROKEN = "broken"
    CONFLICT = "conflict"


@attrs.frozen
class PluginInfo:
    """One line of the listing: one entry point of one distribution.

    Attributes:
        kind: What it offers.
        name: The entry point's name: a URL scheme, or a wrapper's name; empty where the entry points cannot be read.
        distribution: The distribution's name.
        version: The distribution's version.
        status: Its condition.
        detail: What is wrong, for people; empty when nothing is.
    """

    kind: PluginKind
    name: str
    distribution: str
    version: str
    status: PluginStatus
    detail: str = ""


def list_plugins() -> Sequence[PluginInfo]:
    """Return every installed plugin, ordered by kind, name and distribution.  Never raises for a bad one.

    This imports them all (except the blocked and the conflicting ones) to find out whether they work.
    """
    plugins = PluginSet()
    entries, unreadable = plugins.scan()
    disabled = disabled_names()
    claims = Counter((entry.kind, entry.name) for entry in entries if not entry.is_disabled(disabled))
    listed = [
        PluginInfo(kind, "", found.distribution, found.version, PluginStatus.BROKEN, found.problem)
        for found in unreadable
        for kind in found.kinds
    ]
    for entry in entries:
        if entry.is_disabled(disabled):
            status, detail = PluginStatus.BLOCKED, f"named in {DISABLE_VARIABLE}"
        elif claims[entry.kind, entry.name] > 1:
            others = [other for other in entries if (other.kind, other.name) == (entry.kind, entry.name)]
            status = PluginStatus.CONFLICT
            detail = "also offered by " + ", ".join(
                other.source for other in others if other is not entry and not other.is_disabled(disabled)
            )
        else:
            status, detail = _examined(plugins, entry)
        listed.append(PluginInfo(entry.kind, entry.name, entry.distribution, entry.version, status, detail))
    order = list(PluginKind)
    return sorted(listed, key=lambda info: (order.index(info.kind), info.name, info.distribution))


def _examined(plugins: PluginSet, entry: Entry) -> tuple[PluginStatus, str]:
    try:
        plugins.offered(entry, plugins.load(entry))
    except PluginError as error:
        return PluginStatus.BROKEN, str(error)
    return PluginStatus.OK, ""
