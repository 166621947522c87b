"""Finding blobs that nobody refers to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import cast

import attrs

from strata_core._validation import check_moment
from strata_core.blobs._names import thread_folder, thread_of_folder
from strata_core.errors import InvalidInputError
from strata_core.listing import ThreadWalk, UnreadableThread
from strata_core.ports import BlobListing, BlobReferences, BlobStore, CheckpointQuery, StoredBlob
from strata_core.records import ThreadQuery

__all__ = ["BlobCheck", "check_blobs"]


@attrs.frozen
class BlobCheck:
    """What was found about the blobs of one folder.

    Attributes:
        folder: The folder's name.
        thread_id: Whose it is; None when its name is hashed and no thread of the store fits it.
        has_thread: Whether the store has that thread.
        blobs: All of its blobs.
        orphans: Those that no checkpoint refers to, the ones that are too young to tell left out.
    """

    folder: str
    thread_id: str | None
    has_thread: bool
    blobs: Sequence[StoredBlob]
    orphans: Sequence[StoredBlob]


def check_blobs(store: CheckpointQuery, blobs: BlobStore, *, older_than: datetime) -> AsyncIterator[BlobCheck]:
    """Look at every folder of a blob store, and yield what of it the checkpoints of a store refer to.

    Only reads.  A folder's rows are read after its blobs were listed, so a row that is written meanwhile counts.  But a
    blob is put before its row, so one that is not older than `older_than` is never called an orphan.  Neither is an old
    one safe to delete by hand while anybody saves: a save of the same value finds it and does not put it again.  A
    purge takes what a thread left, together with the thread.

    Args:
        store: An open store that has `BlobReferences`.  All its threads are listed once if there are hashed folders.
        blobs: An open blob store that has `BlobListing`.
        older_than: Aware; compared to the storage's own times.

    Raises:
        InvalidInputError: One of the two cannot tell what is asked, or `older_than` is naive.
        CorruptCheckpointError: A row cannot be read.
        StoreUnavailableError: One of the two did not answer.
    """
    if not hasattr(store, "blob_references"):
        raise InvalidInputError("store", f"a {type(store).__name__} cannot tell which blobs its checkpoints refer to")
    if not hasattr(blobs, "list_blobs"):
        raise InvalidInputError("blobs", f"a {type(blobs).__name__} cannot list what it keeps")
    check_moment(older_than, "older_than")
    return _checks(store, cast("BlobReferences", store), cast("BlobListing", blobs), older_than)


async def _checks(
    query: CheckpointQuery, rows: BlobReferences, blobs: BlobListing, older_than: datetime
) -> AsyncIterator[BlobCheck]:
    hashed: dict[str, str] | None = None
    async for folder, kept in _by_folder(blobs):
        thread_id = thread_of_folder(folder)
        if thread_id is None:
            if hashed is None:
                hashed = await _hashed_folders(query)
            thread_id = hashed.get(folder)
        references = None if thread_id is None else await rows.blob_references(thread_id)
        orphans = [
            blob for blob in kept if blob.stored_at < older_than and blob.digest not in (references or frozenset())
        ]
        yield BlobCheck(folder, thread_id, references is not None, kept, orphans)


async def _by_folder(blobs: BlobListing) -> AsyncIterator[tuple[str, list[StoredBlob]]]:
    kept: list[StoredBlob] = []
    async for blob in blobs.list_blobs():
        if kept and kept[0].folder != blob.folder:
            yield kept[0].folder, kept
            kept = []
        kept.append(blob)
    if kept:
        yield kept[0].folder, kept


async def _hashed_folders(store: CheckpointQuery) -> dict[str, str]:
    """Return the threads whose folders have hashed names, by those names; a thread that cannot be read is one, too."""
    found = {}
    walk = ThreadWalk(store, ThreadQuery())
    while not walk.is_over:
        page = await walk.next_page()
        for thread in [page] if isinstance(page, UnreadableThread) else page:
            folder = thread_folder(thread.thread_id)
            if thread_of_folder(folder) is None:
                found[folder] = thread.thread_id
    return found
