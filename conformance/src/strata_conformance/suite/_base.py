"""What all classes of port tests share: the fixtures, declared capabilities, known failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Protocol, TypeAlias

import pytest

from strata_conformance._runner import run
from strata_core.capabilities import Capability
from strata_core.ports import CheckpointQuery, CheckpointRetention, CheckpointStore
from strata_core.rows import RowBackend
from strata_core.testing import FakeClock

__all__ = ["OpenStore", "PortTests", "Reference", "Store", "SuiteTests"]


class Store(CheckpointStore, CheckpointQuery, CheckpointRetention, Protocol):
    """A store with all its ports; one that it does not declare refuses."""


OpenStore: TypeAlias = Callable[..., AbstractAsyncContextManager[Store]]
Reference: TypeAlias = str | Callable[[], RowBackend | AbstractAsyncContextManager[Store]]
"""How another process opens the storage of a test: a URL, or something to call that can be pickled."""


class SuiteTests:
    """What every class of this suite does, whatever it tests.

    Attributes:
        known_failures: Names of tests that are known to fail, each with the reason.  They must fail: one that passes
            fails the run, until it is taken off the list.
        store_name: What reports call the store; by default the name of the class.
        strata_trace: What the running test asked of the stores that it opened.
    """

    known_failures: ClassVar[Mapping[str, str]] = {}
    store_name: ClassVar[str] = ""
    strata_trace: object = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in cls.known_failures:
            if not callable(getattr(cls, name, None)):
                message = f"{cls.__name__}.known_failures names {name!r}, which is no test of it"
                raise TypeError(message)
        for name, member in vars(cls).items():
            promised = any(hasattr(vars(base).get(name), "__strata_promise__") for base in cls.__mro__[1:])
            if promised and not hasattr(member, "__strata_promise__"):
                message = f"{cls.__name__} replaces {name}: a promise cannot be switched off; use known_failures"
                raise TypeError(message)

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The time of this test, for a store that has no clock of its own: give it to whatever you open."""
        return FakeClock()

    @pytest.fixture(autouse=True)
    def _gate(self, request: pytest.FixtureRequest) -> None:
        reason = self.known_failures.get(request.function.__name__)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
        needed = [mark.args[0] for mark in request.node.iter_markers("requires")]
        refused = [mark.args[0] for mark in request.node.iter_markers("refuses")]
        if not needed and not refused:
            return
        declared = self._declared(request)
        for capability in needed:
            if capability not in declared:
                request.node.user_properties.append(("inapplicable", "undeclared"))
                pytest.skip(f"{type(self).__name__}: the store does not declare {capability.value}")
        for capability in refused:
            if capability in declared:
                request.node.user_properties.append(("inapplicable", "declared"))
                pytest.skip(f"{type(self).__name__}: the store declares {capability.value}, so refuses nothing")

    def _declared(self, request: pytest.FixtureRequest) -> frozenset[Capability]:
        raise AssertionError(type(self).__name__)


class PortTests(SuiteTests):
    """The base of the classes that test a store through its ports."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """A factory of async context managers; the author's one fixture.

        Each call gives another handle on the same storage, which is empty when the test begins.  Options that a test
        may give: ``deltas``, ``offload`` and ``read_only``, as `strata_core.open_store` takes them.
        """
        pytest.fail(f"{type(self).__name__} must define the fixture 'open_store'", pytrace=False)

    @pytest.fixture
    def reference(self) -> Reference | None:
        """How another process opens the storage of this test, for a store that declares `Capability.MULTI_PROCESS`.

        A URL for `strata_core.open_store`, or something to call without arguments that can be pickled, such as
        ``functools.partial(MyBackend, path)``: it returns a row backend, not yet opened, or an async context manager of
        a store, on the system's clock.  None leaves the tests with several processes out, and the report says so.
        """
        return None

    def _declared(self, request: pytest.FixtureRequest) -> frozenset[Capability]:
        open_store: OpenStore = request.getfixturevalue("open_store")

        async def ask() -> frozenset[Capability]:
            async with open_store() as store:
                return store.capabilities

        return run(ask())
