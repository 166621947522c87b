"""Looks plugins up by scheme and name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import attrs

from strata_core._guess import did_you_mean
from strata_core.errors import PluginError
from strata_core.hookspecs import BlobProvider, QueryProvider, RetentionProvider, StoreProvider, WrapperProvider
from strata_core.plugins._entries import DISABLE_VARIABLE, Entry, PluginKind, Unreadable, disabled_names, scan
from strata_core.plugins._plugin import HOOKS, Plugin, import_target

__all__ = ["PluginSet", "StoreParts"]

S = TypeVar("S", StoreProvider, BlobProvider, WrapperProvider)
B = TypeVar("B", QueryProvider, RetentionProvider)

_PUBLISHED: Final = {
    (PluginKind.STORE, "sqlite"): "strata-sqlite",
    (PluginKind.STORE, "postgres"): "strata-postgres",
    (PluginKind.STORE, "postgresql"): "strata-postgres",
    (PluginKind.STORE, "redis"): "strata-redis",
    (PluginKind.STORE, "rediss"): "strata-redis",
    (PluginKind.BLOBS, "s3"): "strata-blobs-s3",
}
_WANTED: Final = {
    PluginKind.STORE: "store for {!r} URLs",
    PluginKind.BLOBS: "blob store for {!r} URLs",
    PluginKind.WRAPPER: "wrapper named {!r}",
}


@attrs.frozen(eq=False)
class StoreParts:
    """The provider of a store, with those that complete a whole store.

    Attributes:
        store: Opens it.
        query: Finds its threads, where it does not do so itself.
        retention: Purges it, where it does not do so itself.
        plugin: Whose store it is.
    """

    store: StoreProvider
    query: QueryProvider | None
    retention: RetentionProvider | None
    plugin: Plugin


class PluginSet:
    """The plugins that can be found now: those passed, then those installed.

    Args:
        plugins: Modules or objects with hooks.  A scheme or name that they serve is theirs, and no installed plugin is
            looked at for it.

    Raises:
        PluginError: A passed plugin does not fit the hooks.
    """

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._loaded: dict[int, Plugin] = {}
        self._passed: list[Plugin] = []
        for target in plugins:
            if id(target) not in self._loaded:
                self._loaded[id(target)] = Plugin(target)
                self._passed.append(self._loaded[id(target)])
        self._scanned: tuple[Sequence[Entry], Sequence[Unreadable]] | None = None

    @property
    def passed(self) -> Sequence[Plugin]:
        """The plugins that were passed."""
        return tuple(self._passed)

    def store(self, scheme: str) -> StoreParts:
        """Return who opens stores with this URL scheme.

        Raises:
            PluginError: Nobody does, two do, the one who does is blocked, broken or of another port version.
        """
        plugin, provider = self._find(PluginKind.STORE, StoreProvider, scheme, lambda found: scheme in found.schemes)
        askable = self._passed if plugin in self._passed else [*self._passed, plugin]
        return StoreParts(
            provider,
            self._part(QueryProvider, provider.name, askable),
            self._part(RetentionProvider, provider.name, askable),
            plugin,
        )

    def blobs(self, scheme: str) -> tuple[Plugin, BlobProvider]:
        """Return who opens blob stores with this URL scheme.

        Raises:
            PluginError: As for `store`.
        """
        return self._find(PluginKind.BLOBS, BlobProvider, scheme, lambda found: scheme in found.schemes)

    def wrapper(self, name: str) -> tuple[Plugin, WrapperProvider]:
        """Return who offers the wrapper of this name.

        Raises:
            PluginError: As for `store`.
        """
        return self._find(PluginKind.WRAPPER, WrapperProvider, name, lambda found: found.name == name)

    def scan(self) -> tuple[Sequence[Entry], Sequence[Unreadable]]:
        """Return what is installed, read once."""
        if self._scanned is None:
            self._scanned = scan()
        return self._scanned

    def load(self, entry: Entry) -> Plugin:
        """Import an installed plugin; one that several entry points name is registered once.

        Raises:
            PluginError: It is broken.
        """
        target = import_target(entry)
        if id(target) not in self._loaded:
            self._loaded[id(target)] = Plugin(target, entry)
        return self._loaded[id(target)]

    def offered(self, entry: Entry, plugin: Plugin) -> StoreProvider | BlobProvider | WrapperProvider:
        """Return what the plugin offers under its entry point's name.

        Raises:
            PluginError: It offers nothing under that name, or two things.
        """
        if entry.kind is PluginKind.STORE:
            return _only(entry, plugin, StoreProvider, lambda found: entry.name in found.schemes)
        if entry.kind is PluginKind.BLOBS:
            return _only(entry, plugin, BlobProvider, lambda found: entry.name in found.schemes)
        return _only(entry, plugin, WrapperProvider, lambda found: found.name == entry.name)

    def _find(self, kind: PluginKind, provider: type[S], name: str, serves: Callable[[S], bool]) -> tuple[Plugin, S]:
        mine = [(plugin, found) for plugin in self._passed for found in plugin.offers(provider) if serves(found)]
        if len(mine) > 1:
            raise PluginError(
                f"two passed plugins serve the {_WANTED[kind].format(name)}: "
                + " and ".join(plugin.label for plugin, _ in mine)
            )
        if mine:
            return mine[0]
        entry = self._entry(kind, name)
        plugin = self.load(entry)
        return plugin, _only(entry, plugin, provider, serves)

    def _entry(self, kind: PluginKind, name: str) -> Entry:
        entries, unreadable = self.scan()
        disabled = disabled_names()
        named = [entry for entry in entries if entry.kind is kind and entry.name == name]
        usable = [entry for entry in named if not entry.is_disabled(disabled)]
        if len(usable) == 1:
            return usable[0]
        wanted = _WANTED[kind].format(name)
        if usable:
            raise PluginError(
                f"the {wanted} is offered by {_sources(usable)}: uninstall all but one, or name the distributions "
                f"that must not serve it in {DISABLE_VARIABLE}",
                distributions=[entry.source for entry in usable],
            )
        if named:
            raise PluginError(
                f"the {wanted} of {_sources(named)} is blocked by {DISABLE_VARIABLE}",
                distributions=[entry.source for entry in named],
            )
        installed = sorted({entry.name for entry in entries if entry.kind is kind and not entry.is_disabled(disabled)})
        known = [*installed, *(scheme for of, scheme in _PUBLISHED if of is kind)]
        guess = "" if (kind, name) in _PUBLISHED else did_you_mean(name, known)
        problem = f"no plugin offers a {wanted}{guess}; installed: {', '.join(installed) or 'none'}"
        damaged = [found for found in unreadable if kind in found.kinds]
        if damaged:
            problem += "; damaged: " + ", ".join(f"{found.source} ({found.problem})" for found in damaged)
        other = (PluginKind.BLOBS, name)
        if kind is PluginKind.STORE and (other in _PUBLISHED or other in {(it.kind, it.name) for it in entries}):
            problem += f"; {name!r} is a blob store: give it as Offload(blobs=...)"
        if (kind, name) in _PUBLISHED:
            problem += f"; install {_PUBLISHED[kind, name]}"
        raise PluginError(problem, distributions=[found.source for found in damaged])

    def _part(self, kind: type[B], store: str, plugins: Sequence[Plugin]) -> B | None:
        found = [(plugin, part) for plugin in plugins for part in plugin.offers(kind) if part.name == store]
        if len(found) > 1:
            raise PluginError(
                f"{HOOKS[kind]} of the store {store!r} is offered twice: "
                + " and ".join(plugin.label for plugin, _ in found),
                distributions=[source for plugin, _ in found for source in plugin.distributions],
            )
        return found[0][1] if found else None


def _only(entry: Entry, plugin: Plugin, provider: type[S], serves: Callable[[S], bool]) -> S:
    offers = plugin.offers(provider)
    found = [offer for offer in offers if serves(offer)]
    if len(found) == 1:
        return found[0]
    hook = HOOKS[provider]
    if found:
        raise plugin.error(f"offers {entry.name!r} twice in {hook}")
    if not offers:
        raise plugin.error(f"offers nothing: no function {hook} is marked with strata_core.hookspecs.hookimpl")
    served = sorted(
        {name for offer in offers for name in ((offer.name,) if isinstance(offer, WrapperProvider) else offer.schemes)}
    )
    raise plugin.error(f"offers {', '.join(served)} in {hook}, but not {entry.name!r}, the name of its entry point")


def _sources(entries: Sequence[Entry]) -> str:
    return " and ".join(f"{entry.source} ({entry.point.value})" for entry in entries)
