"""The checks of a graph's waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from strata_core._validation import check_thread_id, shown
from strata_core.errors import InvalidInputError
from strata_core.graph._drafts import Draft, WaitDraft
from strata_core.graph._handlers import HandlerError, inspect_handler
from strata_core.graph._problems import GraphProblem, ProblemCode
from strata_core.records import WaitKind

__all__ = ["NAMES", "find_wait_problems", "times_out"]

NAMES: Final = {
    WaitKind.PERSON: "an interrupt boundary",
    WaitKind.EVENT: "an event wait",
    WaitKind.TIMER: "a timer",
}

_LONGEST: Final = timedelta(days=36_525)
"""A century: a duration that never overflows, whenever it is counted from."""


def find_wait_problems(draft: Draft) -> Iterable[GraphProblem]:
    """Yield everything that is wrong with the waits of a graph, apart from names that do not exist."""
    counts = Counter(_name(wait) for wait in draft.waits)
    for name, count in counts.items():
        if count > 1 and name is not None:
            text = f"node {name!r} has {count} waits; put another node between two"
            yield GraphProblem(ProblemCode.DUPLICATE_WAIT, name, text)
    for wait in draft.waits:
        yield from _event_type(wait)
        if wait.kind is WaitKind.TIMER:
            yield from _delay(wait)
        else:
            yield from _timeout(wait)


def times_out(wait: WaitDraft) -> bool:
    """Tell whether a wait for something else than a time comes to an end by itself."""
    return wait.kind is not WaitKind.TIMER and wait.delay is not None


def _name(wait: WaitDraft) -> str | None:
    return wait.node if isinstance(wait.node, str) else None


def _event_type(wait: WaitDraft) -> Iterable[GraphProblem]:
    if wait.kind is WaitKind.EVENT:
        try:
            check_thread_id(wait.event_type, "event_type")
        except InvalidInputError as error:
            text = f"the event type of the wait at node {wait.node!r} {error.problem}"
            yield GraphProblem(ProblemCode.INVALID_EVENT_TYPE, _name(wait), text)


def _delay(wait: WaitDraft) -> Iterable[GraphProblem]:
    if not callable(wait.delay):
        yield from _duration(wait, f"the delay of the timer at node {wait.node!r}", "or a function that tells one, ")
        return
    try:
        inspect_handler(wait.delay)
    except HandlerError as error:
        text = f"the delay of the timer at node {wait.node!r} {error}"
        yield GraphProblem(ProblemCode.INVALID_HANDLER, _name(wait), text)


def _timeout(wait: WaitDraft) -> Iterable[GraphProblem]:
    if wait.delay is not None:
        yield from _duration(wait, f"the timeout of {NAMES[wait.kind]} at node {wait.node!r}", "")
    elif wait.on_timeout is not None:
        text = (
            f"{NAMES[wait.kind]} at node {wait.node!r} has the timeout route {shown(wait.on_timeout)} and no timeout; "
            "give it timeout=timedelta(...)"
        )
        yield GraphProblem(ProblemCode.INVALID_TIMEOUT, _name(wait), text)


def _duration(wait: WaitDraft, what: str, instead: str) -> Iterable[GraphProblem]:
    value = wait.delay
    if not isinstance(value, timedelta):
        text = f"{what} must be a timedelta, {instead}not {type(value).__name__}"
    elif not timedelta(0) <= value <= _LONGEST:
        text = f"{what} must be a timedelta of zero or more, at most {_LONGEST.days} days, not {value!r}"
    else:
        return
    yield GraphProblem(ProblemCode.INVALID_TIMEOUT, _name(wait), text)
