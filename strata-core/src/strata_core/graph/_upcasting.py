"""From the saved state of another version of a graph to one of this version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from strata_core._validation import check_thread_id, shown
from strata_core.codec import check_json
from strata_core.errors import InvalidInputError
from strata_core.graph._texts import describe

__all__ = ["Upcast", "UpcastError", "checked_upcast", "upcast_state"]

Step: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
Upcast: TypeAlias = Callable[[dict[str, Any], str], Mapping[str, Any]] | Mapping[str, Step]
"""What `StateGraph.compile` takes: a function of the state and its version, or a step from each version to the next."""


class UpcastError(Exception):
    """A user's function failed, or gave no state; `cause` is its error, None when there was none."""

    def __init__(self, problem: str, cause: Exception | None = None) -> None:
        super().__init__(problem)
        self.cause = cause


def checked_upcast(upcast: Upcast, version: str | None) -> Upcast:
    """Return what a graph keeps: a function, or steps that nobody else changes.

    Args:
        upcast: What `StateGraph.compile` was given.
        version: The version of the graph, to which the last step leads; None for a graph without an identity.

    Raises:
        InvalidInputError: It is neither.
    """
    if callable(upcast):
        return upcast
    if not isinstance(upcast, Mapping) or not upcast:
        text = f"must be a function of (state, version), or functions of the state by version, not {shown(upcast)}"
        raise InvalidInputError("upcast", text)
    for name, step in upcast.items():
        check_thread_id(name, f"upcast, version {shown(name)}")
        if not callable(step):
            raise InvalidInputError("upcast", f"the step from version {name!r} must be a function, not {shown(step)}")
    if version in upcast:
        raise InvalidInputError("upcast", f"has a step from version {version!r}, which is that of the graph itself")
    return dict(upcast)


def upcast_state(upcast: Upcast, content: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a saved state, which may be changed, as this version of the graph wants it.

    Raises:
        UpcastError: It cannot be brought up.
    """
    if callable(upcast):
        found = _apply(lambda state: upcast(state, version), content, version)
    else:
        versions = list(upcast)
        if version not in upcast:
            raise UpcastError(
                f"upcast from version {version!r}: there are steps only from {', '.join(map(repr, versions))}"
            )
        found = content
        for name in versions[versions.index(version) :]:
            found = _apply(upcast[name], found, name)
    try:
        check_json(found)
    except InvalidInputError as error:
        raise UpcastError(f"what upcast returned cannot be saved: {error}", error) from error
    return found


def _apply(step: Step, content: dict[str, Any], version: str) -> dict[str, Any]:
    try:
        found: object = step(content)
    except Exception as error:
        raise UpcastError(f"upcast from version {version!r}: {describe(error)}", error) from error
    if not isinstance(found, Mapping):
        raise UpcastError(f"upcast from version {version!r} returned {type(found).__name__}, not a JSON object")
    return dict(found)
