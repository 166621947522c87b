"""What a plugin can offer: five hooks, and the records that they return.

A plugin is a module (or an object) with functions marked `hookimpl`, named by an entry point of its distribution:

    [project.entry-points."strata_core.stores"]
    acme = "acme_strata"

The entry point's name is the URL scheme, or the wrapper's name, so that only the wanted plugin is ever imported.  The
groups are ``strata_core.stores`` (stores, with their queries and retention), ``strata_core.blobs`` and
``strata_core.wrappers``.  A module that serves several schemes has an entry point for each.  One module can implement
one hook several times: ``@hookimpl(specname="strata_checkpoint_store")`` on functions of any name.

Hooks are synchronous, take no arguments, and only describe: they return a record whose factory is called later, when
somebody asks for the scheme.  Import drivers inside the factory.
"""

from __future__ import annotations

from typing import Final

import pluggy

from strata_core._providers import (
    BlobProvider,
    QueryProvider,
    RetentionProvider,
    StoreProvider,
    WrapperLayer,
    WrapperProvider,
)

__all__ = [
    "PORT_VERSION",
    "PROJECT_NAME",
    "BlobProvider",
    "QueryProvider",
    "RetentionProvider",
    "StoreProvider",
    "WrapperLayer",
    "WrapperProvider",
    "hookimpl",
    "hookspec",
    "strata_blob_store",
    "strata_checkpoint_query",
    "strata_checkpoint_retention",
    "strata_checkpoint_store",
    "strata_wrap_checkpoint_store",
]

PROJECT_NAME: Final = "strata_core"
"""The project name of the markers."""
PORT_VERSION: Final = 1
"""The version of ports, row boundary and hooks that this release speaks.

A plugin writes the number it was made for into its records, as a literal: a plugin that passed this constant on would
claim to fit every release.
"""

hookspec: Final = pluggy.HookspecMarker(PROJECT_NAME)
"""Marks the hooks below."""
hookimpl: Final = pluggy.HookimplMarker(PROJECT_NAME)
"""Marks a plugin's implementation of a hook."""


@hookspec
def strata_checkpoint_store() -> StoreProvider | None:
    """Offer a store for URLs.

    Returning a `RowBackend` is the short way: core adds encoding, deltas, offload, conditional and fenced saves,
    batches, listing and purge.  Return a whole `CheckpointStore` only when something else already does all that, such
    as a service that speaks the ports.

    Returns:
        The provider; its `schemes` hold the name of the entry point.

    Example:
        The entry point is ``scratch = "scratch_strata"`` in the group ``strata_core.stores``, and this is
        ``scratch_strata.py``; a real plugin has a `RowBackend` of its own in place of the one in memory::

            from strata_core.hookspecs import StoreProvider, hookimpl


            def open_scratch(url, options):
                from strata_core.memory import MemoryBackend

                return MemoryBackend(clock=options.clock)


            @hookimpl
            def strata_checkpoint_store():
                return StoreProvider(name="scratch", schemes=("scratch",), port_version=1, open=open_scratch)

        From then on ``open_store("scratch://")`` opens it.
    """


@hookspec
def strata_checkpoint_query() -> QueryProvider | None:
    """Offer listings and logs for a whole store that has none itself.

    A store made of a `RowBackend` needs no such hook.  The hook lives in the plugin of the store, whose name it gives;
    `bind` gets what the store's provider opened.

    Returns:
        The provider.

    Example:
        The entry point is ``journal = "journal_strata"`` in the group ``strata_core.stores``; a real plugin opens the
        client of its service in place of the `RowStore`::

            from strata_core.hookspecs import QueryProvider, StoreProvider, hookimpl
            from strata_core.records import LogPage, ThreadQuery


            class JournalQuery:
                def __init__(self, journal):
                    self._journal = journal

                async def list_threads(self, query=ThreadQuery()):
                    return await self._journal.list_threads(query)

                async def get_log(self, thread_id, *, start=0, limit=100):
                    entries = []
                    while entry := await self._journal.load(thread_id, at=start + len(entries)):
                        if len(entries) == limit:
                            return LogPage(entries, next_start=entry.sequence)
                        entries.append(entry)
                    return LogPage(entries)


            def open_journal(url, options):
                from strata_core.memory import MemoryBackend
                from strata_core.store import RowStore

                return RowStore(MemoryBackend(clock=options.clock))


            @hookimpl
            def strata_checkpoint_store():
                return StoreProvider(name="journal", schemes=("journal",), port_version=1, open=open_journal)


            @hookimpl
            def strata_checkpoint_query():
                return QueryProvider(name="journal", port_version=1, bind=JournalQuery)
    """


@hookspec
def strata_checkpoint_retention() -> RetentionProvider | None:
    """Offer the purge for a whole store that has none itself.

    A store made of a `RowBackend` needs no such hook.  The hook lives in the plugin of the store, whose name it gives;
    `bind` gets what the store's provider opened.

    Returns:
        The provider.

    Example:
        The entry point is ``ledger = "ledger_strata"`` in the group ``strata_core.stores``; a real plugin opens the
        client of its service in place of the `RowStore`::

            from strata_core.hookspecs import RetentionProvider, StoreProvider, hookimpl
            from strata_core.records import FINISHED


            class LedgerRetention:
                def __init__(self, ledger):
                    self._ledger = ledger

                async def purge(self, older_than, *, states=FINISHED, limit=1000):
                    return await self._ledger.purge(older_than, states=states, limit=limit)


            def open_ledger(url, options):
                from strata_core.memory import MemoryBackend
                from strata_core.store import RowStore

                return RowStore(MemoryBackend(clock=options.clock))


            @hookimpl
            def strata_checkpoint_store():
                return StoreProvider(name="ledger", schemes=("ledger",), port_version=1, open=open_ledger)


            @hookimpl
            def strata_checkpoint_retention():
                return RetentionProvider(name="ledger", port_version=1, bind=LedgerRetention)
    """


@hookspec
def strata_blob_store() -> BlobProvider | None:
    """Offer a blob store for URLs, for values that are offloaded out of the store's own database.

    Returns:
        The provider; its `schemes` hold the name of the entry point.

    Example:
        The entry point is ``shelf = "shelf_strata"`` in the group ``strata_core.blobs``::

            from strata_core.hookspecs import BlobProvider, hookimpl

            SHELVES = {}


            class Shelf:
                def __init__(self):
                    self._blobs = {}

                async def put(self, thread_id, digest, content):
                    self._blobs.setdefault(thread_id, {})[digest] = content

                async def get(self, thread_id, digest):
                    return self._blobs.get(thread_id, {}).get(digest)

                async def delete_thread(self, thread_id):
                    self._blobs.pop(thread_id, None)


            def open_shelf(url):
                return SHELVES.setdefault(url, Shelf())


            @hookimpl
            def strata_blob_store():
                return BlobProvider(name="shelf", schemes=("shelf",), port_version=1, open=open_shelf)

        From then on ``Offload(blobs="shelf:top")`` puts large values there.
    """


@hookspec
def strata_wrap_checkpoint_store() -> WrapperProvider | None:
    """Offer a layer around stores.  It is applied only where somebody asks for it by name.

    Returns:
        The provider; its `name` is the name of the entry point.

    Example:
        The entry point is ``audit = "audit_strata"`` in the group ``strata_core.wrappers``::

            import logging

            from strata_core.hookspecs import WrapperLayer, WrapperProvider, hookimpl

            LOG = logging.getLogger("audit")


            class Audited:
                def __init__(self, store):
                    self._store = store

                def __getattr__(self, name):  # everything else, and above all `capabilities`
                    return getattr(self._store, name)

                async def save(self, checkpoint, **options):
                    sequence = await self._store.save(checkpoint, **options)
                    LOG.info("%s #%d is %s", checkpoint.thread_id, sequence, checkpoint.status)
                    return sequence


            @hookimpl
            def strata_wrap_checkpoint_store():
                return WrapperProvider(name="audit", layer=WrapperLayer.PORTS, wrap=Audited, port_version=1)

        From then on ``open_store("sqlite:///orders.db", wrappers=["audit"])`` logs every plain save.
    """
