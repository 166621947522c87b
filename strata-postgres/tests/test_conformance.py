"""PostgreSQL keeps every promise of the contract; this is all that a backend of a third party needs, too."""

import functools

import pytest
from postgres_support import contents

from strata_conformance import Footprint, OpenBackend, Reference, RowBackendTests
from strata_postgres import PostgresBackend, PostgresOptions

OPTIONS = PostgresOptions(min_connections=0)
"""Each connection is a process of the server: of the hundreds of stores none makes one that it does not need."""


class TestConformance(RowBackendTests):
    @pytest.fixture
    def open_backend(self, shared_url: str) -> OpenBackend:
        return lambda: PostgresBackend(shared_url, options=OPTIONS)

    @pytest.fixture
    def open_blank_backend(self, url: str) -> OpenBackend:
        return lambda: PostgresBackend(url, options=OPTIONS)

    @pytest.fixture
    def reference(self, shared_url: str) -> Reference:
        return functools.partial(PostgresBackend, shared_url, options=OPTIONS)

    @pytest.fixture
    def footprint(self, shared_url: str, url: str) -> Footprint:
        return lambda: {"prepared": contents(shared_url), "blank": contents(url)}
