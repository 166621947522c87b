"""What all classes of port tests share: the fixtures, declared capabilities, known failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import pytest

from strata_conformance._footprint import files
from strata_conformance._runner import run
from strata_core.capabilities import Capability
from strata_core.errors import StrataError, UnsupportedError
from strata_core.options import Setup
from strata_core.ports import CheckpointQuery, CheckpointRetention, CheckpointStore
from strata_core.rows import RowBackend
from strata_core.testing import FakeClock

__all__ = ["Footprint", "OpenExpiringStore", "OpenStore", "PortTests", "Reference", "Store", "SuiteTests", "lasting"]


class Store(CheckpointStore, CheckpointQuery, CheckpointRetention, Protocol):
    """A store with all its ports; one that it does not declare refuses."""


OpenStore: TypeAlias = Callable[..., AbstractAsyncContextManager[Store]]
Reference: TypeAlias = str | Callable[[], RowBackend | AbstractAsyncContextManager[Store]]
"""How another process opens the storage of a test: a URL, or something to call that can be pickled."""
Footprint: TypeAlias = Callable[[], Mapping[str, object]]
"""What stands in the place of a test's storage at this moment, by name, as its owner sees it: files, tables, keys."""

lasting = pytest.mark.lasting
"""Marks what is tested of storage that has to be set up, which memory of a process has not."""
OpenExpiringStore: TypeAlias = Callable[..., AbstractAsyncContextManager[Store]]
"""As `OpenStore`, its first argument the ttl of finished threads, a timedelta."""
_BLANK = ("open_blank_backend", "open_blank_store")
_EXPIRING = ("open_expiring_backend", "open_expiring_store")


class SuiteTests:
    """What every class of this suite does, whatever it tests.

    Attributes:
        known_failures: Names of tests that are known to fail, each with the reason.  They must fail: one that passes
            fails the run, until it is taken off the list.
        store_name: What reports call the store; by default the name of the class.
        in_memory: Whether the storage is memory of this process: it is there as soon as it is asked for, so opening it
            creates nothing.  A store that declares `Capability.MULTI_PROCESS` cannot be.
        strata_trace: What the running test asked of the stores that it opened.
    """

    known_failures: ClassVar[Mapping[str, str]] = {}
    store_name: ClassVar[str] = ""
    in_memory: ClassVar[bool] = False
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

    @pytest.fixture
    def footprint(self, tmp_path: Path) -> Footprint:
        """What shows that opening a store created or changed something.

        By default the files in ``tmp_path`` with their content.  A store that keeps its data elsewhere overrides it:
        the function returns, for instance, the tables of a schema, or the keys under a prefix, with whatever of their
        content tells one state from another.
        """
        return lambda: files(tmp_path)

    @pytest.fixture(autouse=True)
    def _gate(self, request: pytest.FixtureRequest) -> None:
        reason = self.known_failures.get(request.function.__name__)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
        needed = [mark.args[0] for mark in request.node.iter_markers("requires")]
        refused = [mark.args[0] for mark in request.node.iter_markers("refuses")]
        lasts = request.node.get_closest_marker("lasting") is not None
        if not needed and not refused and not lasts:
            return
        blank = next((name for name in _BLANK if name in request.fixturenames), None)
        if blank is not None and not self.in_memory and request.getfixturevalue(blank) is None:
            pytest.skip(f"{type(self).__name__}: no blank place given, so nothing can be seen to be created in it")
        declared = self._declared(request, Setup.AUTO if blank is None or self.in_memory else Setup.NEVER)
        if lasts and self.in_memory:
            assert Capability.MULTI_PROCESS not in declared, f"{type(self).__name__} is not in memory of this process"
            request.node.user_properties.append(("inapplicable", "in memory"))
            pytest.skip(f"{type(self).__name__}: the storage is memory of this process, so nothing has to be set up")
        for capability in needed:
            if capability not in declared:
                request.node.user_properties.append(("inapplicable", "undeclared"))
                pytest.skip(f"{type(self).__name__}: the store does not declare {capability.value}")
        for capability in refused:
            if capability in declared:
                request.node.user_properties.append(("inapplicable", "declared"))
                pytest.skip(f"{type(self).__name__}: the store declares {capability.value}, so refuses nothing")

        expiring = next((name for name in _EXPIRING if name in request.fixturenames), None)
        if expiring is not None and request.getfixturevalue(expiring) is None:
            pytest.skip(f"{type(self).__name__}: no store given whose finished threads expire, so none can be seen to")

    def _declared(self, request: pytest.FixtureRequest, setup: Setup) -> frozenset[Capability]:
        raise AssertionError(type(self).__name__, request, setup)


class PortTests(SuiteTests):
    """The base of the classes that test a store through its ports."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """A factory of async context managers; the author's one fixture.

        Each call gives another handle on the same storage, which is empty when the test begins.  Options that a test
        may give: ``deltas``, ``offload``, ``read_only`` and ``setup``, as `strata_core.open_store` takes them.
        """
        pytest.fail(f"{type(self).__name__} must define the fixture 'open_store'", pytrace=False)

    @pytest.fixture
    def open_blank_store(self, open_store: OpenStore) -> OpenStore | None:
        """A factory like `open_store`, of a place where no store was ever set up.

        By default `open_store` itself, whose storage is so when the test begins.  Where that one was prepared, for
        speed, this gives another place; None leaves the tests of what opening creates out, and the report says so.
        """
        return open_store

    @pytest.fixture
    def open_expiring_store(self) -> OpenExpiringStore | None:
        """A factory like `open_store`, of stores whose finished threads expire: its first argument is the ttl.

        For a store that declares `Capability.EXPIRY`: on the same storage as `open_store`, with the store's own option
        set.  None leaves the tests of expiry out, and the report says so.
        """
        return None

    @pytest.fixture
    def reference(self) -> Reference | None:
        """How another process opens the storage of this test, for a store that declares `Capability.MULTI_PROCESS`.

        A URL for `strata_core.open_store`, or something to call without arguments that can be pickled, such as
        ``functools.partial(MyBackend, path)``: it returns a row backend, not yet opened, or an async context manager of
        a store, on the system's clock.  None leaves the tests with several processes out, and the report says so.
        """
        return None

    def _declared(self, request: pytest.FixtureRequest, setup: Setup) -> frozenset[Capability]:
        blank = "open_store" if setup is Setup.AUTO else "open_blank_store"
        open_store: OpenStore = request.getfixturevalue(blank)

        async def ask() -> frozenset[Capability]:
            if setup is Setup.AUTO:
                async with open_store() as store:
                    return store.capabilities
            lacking: set[Capability] = set()
            for options in ({}, {"read_only": True}):
                try:
                    async with open_store(setup=setup, **options) as store:
                        return store.capabilities
                except UnsupportedError as error:
                    lacking.add(error.capability)
                except StrataError:
                    continue  # it cannot be opened so, and says no more
            return frozenset(Capability) - lacking

        return run(ask())
