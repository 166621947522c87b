"""From a saved state back to the state type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from strata_core.codec import copy_json
from strata_core.errors import RehydrationError
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import named, refuse
from strata_core.graph._results import Failed, FailureCode
from strata_core.graph._upcasting import UpcastError, upcast_state
from strata_core.records import Checkpoint

__all__ = ["UNFIT", "rehydrate"]

S = TypeVar("S")

UNFIT: Final = "refuses the signal: an override does not fit the state; it still waits"


def rehydrate(
    plan: Plan[S], checkpoint: Checkpoint, overrides: Mapping[str, Any] | None = None, path: Sequence[str] = ()
) -> tuple[S] | Failed:
    """Return the state with the overrides, in a tuple, because a state may be anything.

    Args:
        plan: The graph.
        checkpoint: Its record.
        overrides: JSON values by the names of top-level fields.
        path: Where the record stands: the path to the subgraph that the graph is.
    """
    thread_id = checkpoint.thread_id
    inside = f"inside {named(path)}: " if path else ""
    message = f"failed to rehydrate state for thread '{thread_id}'"
    content: Mapping[str, Any] = checkpoint.frozen_state
    graph, identity = checkpoint.graph, plan.identity
    if plan.upcast is not None and graph is not None and identity is not None and graph.version != identity.version:
        try:
            content = upcast_state(plan.upcast, copy_json(dict(content)), graph.version)
        except UpcastError as error:
            detail = f"{inside}{error}"
            return Failed(thread_id, FailureCode.REHYDRATION_FAILED, message, detail=detail, error=error.cause)
    try:
        # A value that is taken into the state must be no part of the decision that is recorded.
        return (plan.codec.load({**content, **copy_json(dict(overrides or {}))}),)
    except RehydrationError as error:
        if overrides:
            try:
                plan.codec.load(dict(content))
            except RehydrationError:
                pass
            else:
                return refuse(thread_id, FailureCode.INVALID_SIGNAL, UNFIT, f"{inside}{error}")
        detail = f"{inside}{error}; {_upcast_hint(plan, checkpoint)}"
        return Failed(thread_id, FailureCode.REHYDRATION_FAILED, message, detail=detail, error=error)


def _upcast_hint(plan: Plan[S], checkpoint: Checkpoint) -> str:
    """Say how a state of another version is brought up to this one, as far as that has not been done."""
    if plan.upcast is None:
        return "to read states of another version, give compile an identity and upcast=..."
    if plan.identity is None or checkpoint.graph is None:
        return "upcast was not called: the graph and the thread must both have an identity"
    if plan.identity.version == checkpoint.graph.version:
        return f"upcast was not called: the thread is of this version, {plan.identity.version!r}"
    return f"upcast from version {checkpoint.graph.version!r} must return a state of version {plan.identity.version!r}"
