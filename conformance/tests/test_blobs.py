"""The blob stores that come with core pass the suite."""

from pathlib import Path

import pytest

from strata_conformance import BlobStoreTests, OpenBlobs
from strata_core.blobs import FileSystemBlobStore, InMemoryBlobStore


class TestMemoryBlobs(BlobStoreTests):
    @pytest.fixture
    def open_blobs(self) -> OpenBlobs:
        blobs = InMemoryBlobStore()
        return lambda: blobs


class TestFolderBlobs(BlobStoreTests):
    @pytest.fixture
    def open_blobs(self, tmp_path: Path) -> OpenBlobs:
        return lambda: FileSystemBlobStore(tmp_path / "blobs")
