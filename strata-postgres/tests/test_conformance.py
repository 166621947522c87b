"""PostgreSQL keeps every promise of the contract; this is all that a backend of a third party needs, too."""

import functools

import pytest
from postgres_support import contents

from strata_conformance import Footprint, OpenBackend, Reference, RowBackendTests
from strata_postgres import PostgresBackend


class TestConformance(RowBackendTests):
    @pytest.fixture
    def open_backend(self, url: str) -> OpenBackend:
        return lambda: PostgresBackend(url)

    @pytest.fixture
    def reference(self, url: str) -> Reference:
        return functools.partial(PostgresBackend, url)

    @pytest.fixture
    def footprint(self, url: str) -> Footprint:
        return lambda: contents(url)
