"""Stores that fail on a plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from strata_conformance.stores._fault import Fault, Plan
from strata_conformance.stores._ports import STORE_OPS, ForwardingStore
from strata_conformance.stores._rows import BACKEND_OPS, ForwardingBackend
from strata_core.ports import StorePorts
from strata_core.rows import RowBackend

__all__ = ["FaultyBackend", "FaultyStore"]

T = TypeVar("T")


class _Planned:
    """What both layers have: a plan, and a context that holds the test to it."""

    _plan: Plan

    @property
    def unfired(self) -> tuple[Fault, ...]:
        """The faults that have not struck yet."""
        return self._plan.unfired

    def verify(self) -> None:
        """Make sure that every fault has struck.

        Raises:
            UnfiredFaultError: It names those that have not.
        """
        self._plan.verify()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:  # one that ended the test early says more than what it did not come to
            self.verify()


class FaultyStore(_Planned, ForwardingStore):
    """Fails where a plan says so, between an application and its store.

        async with (
            open_store("memory://") as inner,
            FaultyStore(inner, [Fault("save", nth=2, when="after")]) as store,
        ):
            ...  # the second save is done, and whoever saved does not learn it

    Leaving the context without an error calls `verify`.

    Args:
        store: An open store; whoever opened it closes it.
        faults: What goes wrong; see `Fault`.

    Raises:
        InvalidInputError: A fault can never strike.
    """

    def __init__(self, store: StorePorts, faults: Iterable[Fault] = ()) -> None:
        super().__init__(store)
        self._plan = Plan(faults, STORE_OPS)

    async def _around(self, op: str, call: Callable[[], Awaitable[T]], **arguments: Any) -> T:
        return await self._plan.run(op, call)


class FaultyBackend(_Planned, ForwardingBackend):
    """Fails where a plan says so, between core's store and its backend.

        async with (
            FaultyBackend(MemoryBackend(), [Fault("commit", nth=2, when="after")]) as backend,
            RowStore(backend) as store,
        ):
            ...  # the second commit's answer is lost; the store sends it again, and it is recognised

    The context only calls `verify`, when it is left without an error: the store opens and closes the backend.

    Args:
        backend: The backend; it is opened and closed with this one.
        faults: What goes wrong; see `Fault`.

    Raises:
        InvalidInputError: A fault can never strike.
    """

    def __init__(self, backend: RowBackend, faults: Iterable[Fault] = ()) -> None:
        super().__init__(backend)
        self._plan = Plan(faults, BACKEND_OPS)

    async def _around(self, op: str, call: Callable[[], Awaitable[T]], **arguments: Any) -> T:
        return await self._plan.run(op, call)
