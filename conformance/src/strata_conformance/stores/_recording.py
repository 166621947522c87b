"""Stores that record their calls."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

from strata_conformance.stores._call import Call, snapshot
from strata_conformance.stores._ports import ForwardingStore
from strata_conformance.stores._rows import ForwardingBackend
from strata_core.ports import StorePorts
from strata_core.rows import RowBackend

__all__ = ["RecordingBackend", "RecordingStore"]

T = TypeVar("T")


class RecordingStore(ForwardingStore):
    """Records every call of an application to its store.

        async with open_store("memory://") as inner:
            store = RecordingStore(inner)
            await approve(store, "order-1")
        assert ["load", "save_if_latest"] == [call.op for call in store.calls]

    Args:
        store: An open store; whoever opened it closes it.

    Attributes:
        calls: What was called, in the order in which the calls ended: failed and cancelled ones too.
    """

    def __init__(self, store: StorePorts) -> None:
        super().__init__(store)
        self.calls: list[Call] = []

    async def _around(self, op: str, call: Callable[[], Awaitable[T]], **arguments: Any) -> T:
        return await _record(self.calls, ForwardingStore, op, call, arguments)


class RecordingBackend(ForwardingBackend):
    """Records every call of core's store to its backend.

        backend = RecordingBackend(MemoryBackend())
        async with RowStore(backend) as store:
            await store.save(checkpoint)
        assert ["open", "commit", "close"] == [call.op for call in backend.calls]

    Args:
        backend: The backend; it is opened and closed with this one.

    Attributes:
        calls: What was called, in the order in which the calls ended: failed and cancelled ones too.
    """

    def __init__(self, backend: RowBackend) -> None:
        super().__init__(backend)
        self.calls: list[Call] = []

    async def _around(self, op: str, call: Callable[[], Awaitable[T]], **arguments: Any) -> T:
        return await _record(self.calls, ForwardingBackend, op, call, arguments)


async def _record(
    calls: list[Call], layer: type, op: str, call: Callable[[], Awaitable[T]], arguments: dict[str, Any]
) -> T:
    defaults = _defaults(layer, op)
    given = {
        name: snapshot(value) for name, value in arguments.items() if not (name in defaults and value is defaults[name])
    }
    try:
        outcome = await call()
    except BaseException as error:
        calls.append(Call(op, given, error=error))
        raise
    calls.append(Call(op, given, snapshot(outcome)))
    return outcome


@cache
def _defaults(layer: type, op: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(layer, op)).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}
