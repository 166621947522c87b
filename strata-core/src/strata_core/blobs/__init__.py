"""Blob stores that need no server: a folder, and memory; and what any blob store is made of."""

from strata_core.blobs._folder import FileSystemBlobStore
from strata_core.blobs._memory import InMemoryBlobStore
from strata_core.blobs._names import (
    blob_file,
    check_content,
    digest_of_file,
    is_thread_folder,
    thread_folder,
    thread_of_folder,
)
from strata_core.blobs._orphans import BlobCheck, check_blobs
from strata_core.blobs._threads import run_to_the_end

__all__ = [
    "BlobCheck",
    "FileSystemBlobStore",
    "InMemoryBlobStore",
    "blob_file",
    "check_blobs",
    "check_content",
    "digest_of_file",
    "is_thread_folder",
    "run_to_the_end",
    "thread_folder",
    "thread_of_folder",
]
