"""Faults, and the plan that says which call they strike."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, Literal, TypeAlias, TypeVar, get_args

import attrs

from strata_core.errors import InvalidInputError, StoreUnavailableError

__all__ = ["Fault", "Plan", "UnfiredFaultError", "When"]

T = TypeVar("T")

When: TypeAlias = Literal["before", "after", "cancel"]
_WHEN: Final[tuple[str, ...]] = get_args(When)


class UnfiredFaultError(AssertionError):
    """A test ended before its faults struck, so it did not test what it says.

    Attributes:
        faults: Those that did not strike.
    """

    def __init__(self, faults: Collection[Fault]) -> None:
        super().__init__("never struck: " + ", ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


@attrs.frozen
class Fault:
    """What goes wrong, and at which call.

    Attributes:
        op: The name of the method, such as ``save`` or, below core's store, ``commit``.
        nth: At which call of that method, from 1; whoever makes it.
        when: ``before``: the request is lost; the call is not made, and the error raised.
            ``after``: the answer is lost; the call is made, and the error raised in place of whatever it comes to.
            ``cancel``: the call is made, and the task that makes it is cancelled before it learns the answer.  For one
            that is cancelled before it begins, give ``before`` and the error ``asyncio.CancelledError()``.
        error: What is raised; None is `StoreUnavailableError` with `maybe_written`.
    """

    op: str
    nth: int = 1
    when: When = "before"
    error: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.when} {self.op} {self.nth}"


class Plan:
    """Counts the calls of each method and strikes where a fault is planned.

    Args:
        faults: The faults; at most one a call.
        ops: The methods there are.

    Raises:
        InvalidInputError: A fault can never strike, or two strike one call.
    """

    def __init__(self, faults: Iterable[Fault], ops: Collection[str]) -> None:
        self._due: dict[tuple[str, int], Fault] = {}
        self._counts: Counter[str] = Counter()
        for at, fault in enumerate(faults):
            _check(fault, f"faults[{at}]", ops)
            if (fault.op, fault.nth) in self._due:
                raise InvalidInputError(f"faults[{at}]", f"is the second fault at {fault.op} {fault.nth}")
            self._due[fault.op, fault.nth] = fault

    @property
    def unfired(self) -> tuple[Fault, ...]:
        """The faults that have not struck yet, in the order given."""
        return tuple(self._due.values())

    def verify(self) -> None:
        """Raise `UnfiredFaultError` if a fault has not struck."""
        if self._due:
            raise UnfiredFaultError(self.unfired)

    async def run(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, or let a fault strike it."""
        self._counts[op] += 1
        fault = self._due.pop((op, self._counts[op]), None)
        if fault is None:
            return await call()
        if fault.when == "before":
            raise _error(fault, "the request was lost")
        cause: Exception | None = None
        try:
            await call()
        except Exception as error:  # noqa: BLE001  # an answer like any other, and lost like any other
            cause = error
        if fault.when == "cancel":
            await _cancel()
        raise _error(fault, "the answer was lost") from cause


def _error(fault: Fault, problem: str) -> BaseException:
    if fault.error is not None:
        return fault.error
    return StoreUnavailableError(f"{problem} (planned fault: {fault})", maybe_written=True)


async def _cancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.get_running_loop().create_future()  # where the cancellation arrives


def _check(fault: Fault, argument: str, ops: Collection[str]) -> None:
    if fault.op not in ops:
        raise InvalidInputError(f"{argument}.op", f"{fault.op!r} is none of {', '.join(sorted(ops))}")
    if type(fault.nth) is not int or fault.nth < 1:
        raise InvalidInputError(f"{argument}.nth", f"must be an int of at least 1, not {fault.nth!r}")
    if fault.when not in _WHEN:
        raise InvalidInputError(f"{argument}.when", f"must be one of {', '.join(_WHEN)}, not {fault.when!r}")
    if fault.error is not None and not isinstance(fault.error, BaseException):
        raise InvalidInputError(f"{argument}.error", f"must be an exception, not {fault.error!r}")
    if fault.when == "cancel" and fault.error is not None:
        raise InvalidInputError(f"{argument}.error", "must be None with 'cancel', which raises CancelledError")
