"""The suite of the blob port, on two services that speak the protocol."""

from __future__ import annotations

import pytest
from s3_support import Place

from strata_conformance import BlobStoreTests, OpenBlobs


class TestOnMoto(BlobStoreTests):
    @pytest.fixture
    def open_blobs(self, moto: Place) -> OpenBlobs:
        return lambda: moto.store("strata")


class TestOnSwift(BlobStoreTests):
    @pytest.fixture
    def open_blobs(self, swift: Place) -> OpenBlobs:
        return lambda: swift.store("strata")
