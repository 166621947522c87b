"""Ties a test to the promise it proves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import attrs
import pytest

from strata_conformance._runner import run
from strata_conformance._trace import Trace

__all__ = ["Promise", "promise", "promises_of"]

F = TypeVar("F", bound=Callable[..., Any])

OPENING: Final = {f"open_{kind}{what}" for kind in ("", "blank_", "expiring_") for what in ("store", "backend")} | {
    "open_blobs"
}
"""The fixtures that open what is tested."""


@attrs.frozen
class Promise:
    """One promise of the contract.

    Attributes:
        id: Such as ``save-3``; never used again for anything else.
        text: What a store promises: the docstring of the test.
        test: The name of the test that proves it.
        needs: The capabilities without which it does not apply; one that must be missing begins with ``no``.
    """

    id: str
    text: str
    test: str
    needs: tuple[str, ...] = ()


def promise(identity: str) -> Callable[[F], F]:
    """Mark a test as the proof of a promise, and let a coroutine function be a plain test.

    What the test asks of the stores and backends that it opens is recorded, for the report of a failure.  The docstring
    of the test is the promise's sentence in ``CONTRACT.md``.

    Args:
        identity: The ID of the promise.
    """

    def mark(test: F) -> F:
        text = " ".join((test.__doc__ or "").split())

        @functools.wraps(test)
        def proof(*args: Any, **kwargs: Any) -> None:
            recorded = OPENING & kwargs.keys()
            if recorded:
                args[0].strata_trace = trace = Trace()
                kwargs |= {name: trace.around(name, kwargs[name]) for name in recorded}
            if inspect.iscoroutinefunction(test):
                run(test(*args, **kwargs), identity)
            else:
                test(*args, **kwargs)
            if recorded:  # passed: pytest may keep the instance, and calls can hold megabytes
                args[0].strata_trace = None

        proof.__strata_promise__ = Promise(identity, text, test.__name__)  # type: ignore[attr-defined]  # read below
        return pytest.mark.promise(identity)(proof)  # type: ignore[no-any-return]  # the mark returns what it got

    return mark


def promises_of(tests: type) -> Iterator[Promise]:
    """Yield the promises that a class of tests proves, its bases included, in order of definition."""
    seen: set[str] = set()
    for base in reversed(tests.__mro__):
        for name, member in vars(base).items():
            found = getattr(member, "__strata_promise__", None)
            if isinstance(found, Promise) and name not in seen:
                seen.add(name)
                yield attrs.evolve(found, needs=_needs(member))


def _needs(test: object) -> tuple[str, ...]:
    wording = {"requires": "{}", "refuses": "no {}"}
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name in wording]
    return tuple(sorted(wording[mark.name].format(mark.args[0].name) for mark in marks))
