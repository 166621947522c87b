"""Blob stores that need no server: a folder, and memory."""

from strata_core.blobs._folder import FileSystemBlobStore
from strata_core.blobs._memory import InMemoryBlobStore
from strata_core.blobs._names import thread_folder

__all__ = ["FileSystemBlobStore", "InMemoryBlobStore", "thread_folder"]
