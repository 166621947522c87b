"""The plugins that come with core: memory stores and folder blobs.  They take the same way as everybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_core.hookspecs import BlobProvider, StoreProvider, hookimpl

if TYPE_CHECKING:
    from strata_core.blobs import FileSystemBlobStore
    from strata_core.options import StoreOptions
    from strata_core.rows import RowBackend

__all__ = ["strata_blob_store", "strata_checkpoint_store"]


def _open_memory(url: str, options: StoreOptions) -> RowBackend:
    from strata_core._shared_memory import memory_backend

    return memory_backend(url, options.clock)


def _open_folder(url: str) -> FileSystemBlobStore:
    from strata_core.blobs import FileSystemBlobStore
    from strata_core.urls import folder_path

    return FileSystemBlobStore(folder_path(url))


@hookimpl
def strata_checkpoint_store() -> StoreProvider:
    """Offer ``memory:``."""
    return StoreProvider(name="memory", schemes=("memory",), port_version=1, open=_open_memory)


@hookimpl
def strata_blob_store() -> BlobProvider:
    """Offer ``file:``."""
    return BlobProvider(name="file", schemes=("file",), port_version=1, open=_open_folder)
