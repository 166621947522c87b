"""What the installed distributions say they offer, read without importing any of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Final

import attrs

__all__ = ["DISABLE_VARIABLE", "Entry", "PluginKind", "Unreadable", "disabled_names", "scan"]

DISABLE_VARIABLE: Final = "STRATA_DISABLE_PLUGINS"
"""Names of plugins (entry points or whole distributions), separated by commas, that must not be loaded."""

_PREFIX: Final = "strata_core."


class PluginKind(StrEnum):
    """What a plugin offers."""

    STORE = "store"
    BLOBS = "blobs"
    WRAPPER = "wrapper"

    @property
    def group(self) -> str:
        """The entry-point group."""
        return {"store": "strata_core.stores", "blobs": "strata_core.blobs", "wrapper": "strata_core.wrappers"}[self]


@attrs.frozen(eq=False)
class Entry:
    """One entry point of one distribution.

    Attributes:
        kind: Its group.
        name: The scheme, or the wrapper's name.
        distribution: The distribution's name.
        version: The distribution's version.
        point: Imports the plugin.
    """

    kind: PluginKind
    name: str
    distribution: str
    version: str
    point: EntryPoint

    def __str__(self) -> str:
        return f"plugin {self.name!r} of {self.source} (entry point {self.point.value!r} in {self.kind.group})"

    @property
    def source(self) -> str:
        """The distribution with its version, as `PluginError.distributions` holds it."""
        return f"{self.distribution} {self.version}".rstrip()

    def is_disabled(self, names: frozenset[str]) -> bool:
        """Tell whether the entry, or its whole distribution, is among `disabled_names`."""
        return _canonical(self.name) in names or _canonical(self.distribution) in names


@attrs.frozen(eq=False)
class Unreadable:
    """A distribution that has entry points of ours which cannot be parsed."""

    kinds: Sequence[PluginKind]
    distribution: str
    version: str
    problem: str

    @property
    def source(self) -> str:
        """As `Entry.source`."""
        return f"{self.distribution} {self.version}".rstrip()


def disabled_names() -> frozenset[str]:
    """Return what ``STRATA_DISABLE_PLUGINS`` names."""
    listed = os.environ.get(DISABLE_VARIABLE, "").split(",")
    return frozenset(_canonical(name.strip()) for name in listed if name.strip())


def scan(found: Iterable[Distribution] | None = None) -> tuple[Sequence[Entry], Sequence[Unreadable]]:
    """Return every entry of our groups, ordered by kind, name and distribution.

    A distribution that is on the path twice (an editable install and a wheel) counts once, as the one that comes
    first: the one that an import would take.
    """
    entries: list[Entry] = []
    unreadable: list[Unreadable] = []
    seen: set[str] = set()
    for distribution in distributions() if found is None else found:
        text = _text(distribution)
        if _PREFIX not in text:  # most distributions; nothing of them is parsed
            continue
        name, version = _identity(distribution)
        if name and _canonical(name) in seen:
            continue
        seen.add(_canonical(name))
        name = name or "a distribution without a name"
        try:
            entries += _entries(distribution, name, version)
        except Exception as error:  # noqa: BLE001  # one damaged distribution must not hide the others
            kinds = [kind for kind in PluginKind if kind.group in text]
            unreadable.append(Unreadable(kinds, name, version, f"its entry points cannot be read: {error}"))
    order = list(PluginKind)
    entries.sort(key=lambda entry: (order.index(entry.kind), entry.name, entry.distribution, entry.point.value))
    return entries, unreadable


def _entries(distribution: Distribution, name: str, version: str) -> Iterator[Entry]:
    kinds = {kind.group: kind for kind in PluginKind}
    known: set[tuple[str, str, str]] = set()
    for point in distribution.entry_points:
        key = (point.group, point.name, point.value)
        if point.group in kinds and key not in known:
            known.add(key)
            yield Entry(kinds[point.group], point.name, name, version, point)


def _text(distribution: Distribution) -> str:
    try:
        return distribution.read_text("entry_points.txt") or ""
    except Exception:  # noqa: BLE001  # a damaged distribution of somebody else is not our business
        return ""


def _identity(distribution: Distribution) -> tuple[str, str]:
    try:
        metadata = distribution.metadata
        return metadata["Name"] or "", metadata["Version"] or ""
    except Exception:  # noqa: BLE001  # no metadata file: the entry points still say what there is
        return "", ""


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
