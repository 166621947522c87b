"""The tests that the command runs: the suite, on what it was told to test."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from strata_conformance._runner import run
from strata_conformance._scope import MARK, Scope, ScopedBackend
from strata_conformance._target import TTL, Beside, Factory, Kind, Target, Url, function
from strata_conformance.suite import (
    BlobStoreTests,
    Footprint,
    OpenBackend,
    OpenBlobs,
    OpenExpiringBackend,
    OpenExpiringStore,
    OpenStore,
    Reference,
    RowBackendTests,
    StoreTests,
)
from strata_core.testing import FakeClock
from strata_core.urls import scheme_of

_TARGET = Target.given()


_FUNCTION = function(_TARGET.name) if _TARGET.folder else None


@pytest.fixture
def factory() -> Iterator[Factory]:
    """A storage that is the test's alone, by the target's function."""
    made = Factory(_TARGET.name, str(Path(_TARGET.folder, MARK + secrets.token_hex(6))))
    yield made
    made.remove()


if _TARGET.kind is Kind.ROWS and not _TARGET.folder:

    class TestStore(RowBackendTests):
        """The row backends of a URL, confined to threads of the test."""

        store_name: ClassVar[str] = _TARGET.shown
        in_memory: ClassVar[bool] = scheme_of(_TARGET.name) == "memory"

        @pytest.fixture
        def beside(self) -> Iterator[Beside | None]:
            """A place of the test's own, beside the storage, where that is a file or folder."""
            place = Beside.of(_TARGET.name)
            yield place
            if place is not None:
                place.remove()

        @pytest.fixture
        def open_blank_backend(self, beside: Beside | None, clock: FakeClock) -> OpenBackend | None:
            return None if beside is None else lambda: Url(beside.url).bare(clock)

        @pytest.fixture
        def footprint(self, beside: Beside | None) -> Footprint:
            return dict if beside is None else beside.footprint

        @pytest.fixture
        def scope(self, clock: FakeClock) -> Iterator[Scope]:
            scope = Scope()
            yield scope
            if scheme_of(_TARGET.name) != "memory":
                run(scope.clear(Url(_TARGET.name).bare(clock)))

        @pytest.fixture
        def open_backend(self, scope: Scope, clock: FakeClock) -> OpenBackend:
            if scheme_of(_TARGET.name) == "memory":  # is there as long as somebody has it: so each test has its own
                return lambda: Url(f"memory://{scope.prefix}").bare(clock)
            return lambda: ScopedBackend(Url(_TARGET.name).bare(clock), scope)

        @pytest.fixture
        def open_expiring_backend(self, scope: Scope, clock: FakeClock) -> OpenExpiringBackend | None:
            options = Url(_TARGET.name).expiring()
            if options is None:
                return None
            return lambda ttl: ScopedBackend(Url(_TARGET.name).bare(clock, options=options(ttl)), scope)

        @pytest.fixture
        def reference(self, scope: Scope) -> Reference:
            return Url(_TARGET.name, scope.prefix)

elif _TARGET.kind is Kind.ROWS:

    class TestRows(RowBackendTests):
        """The row backends of a function."""

        store_name: ClassVar[str] = _TARGET.shown
        in_memory: ClassVar[bool] = _FUNCTION is not None and bool(getattr(_FUNCTION, "in_memory", False))

        @pytest.fixture
        def footprint(self, factory: Factory) -> Footprint:
            return factory.footprint

        @pytest.fixture
        def open_backend(self, factory: Factory, clock: FakeClock) -> OpenBackend:
            return lambda: factory(clock)

        @pytest.fixture
        def open_expiring_backend(self, factory: Factory, clock: FakeClock) -> OpenExpiringBackend | None:
            return (lambda ttl: factory(clock, **{TTL: ttl})) if factory.takes(TTL) else None

        @pytest.fixture
        def reference(self, factory: Factory) -> Reference:
            return factory

elif _TARGET.kind is Kind.STORE:

    class TestPorts(StoreTests):
        """The whole stores of a function."""

        store_name: ClassVar[str] = _TARGET.shown
        in_memory: ClassVar[bool] = _FUNCTION is not None and bool(getattr(_FUNCTION, "in_memory", False))

        @pytest.fixture
        def footprint(self, factory: Factory) -> Footprint:
            return factory.footprint

        @pytest.fixture
        def open_store(self, factory: Factory, clock: FakeClock) -> OpenStore:
            return lambda **options: factory(clock, **options)

        @pytest.fixture
        def open_expiring_store(self, factory: Factory, clock: FakeClock) -> OpenExpiringStore | None:
            return (lambda ttl, **options: factory(clock, **{TTL: ttl}, **options)) if factory.takes(TTL) else None

        @pytest.fixture
        def reference(self, factory: Factory) -> Reference:
            return factory

else:

    class TestBlobs(BlobStoreTests):
        """The blob stores of a function."""

        store_name: ClassVar[str] = _TARGET.shown

        @pytest.fixture
        def open_blobs(self, factory: Factory, clock: FakeClock) -> OpenBlobs:
            return lambda: factory(clock)
