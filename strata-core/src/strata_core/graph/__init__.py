"""Typed state graphs: build, compile, run, stop for a person, resume."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from strata_core.graph._builder import StateGraph
from strata_core.graph._cancellation import CancellationToken
from strata_core.graph._compiled import CompiledGraph
from strata_core.graph._context import NodeContext
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._problems import GraphProblem, ProblemCode
from strata_core.graph._results import Cancelled, CancelReason, Completed, Failed, FailureCode, Interrupted, RunResult
from strata_core.graph._retry import RetryPolicy
from strata_core.graph._signals import EventSignal, HumanSignal, LevelSignals
from strata_core.graph._state import strict_converter
from strata_core.graph._sweep import SweepReport

if TYPE_CHECKING:
    from strata_core.graph._events import (
        CheckpointSaved,
        Emitted,
        NodeFailed,
        NodeFinished,
        NodeRetrying,
        NodeStarted,
        RunEvent,
        RunFinished,
    )
    from strata_core.graph._stream import RunStream

__all__ = [
    "CancelReason",
    "CancellationToken",
    "Cancelled",
    "CheckpointPolicy",
    "CheckpointSaved",
    "CompiledGraph",
    "Completed",
    "Emitted",
    "EventSignal",
    "Failed",
    "FailureCode",
    "GraphProblem",
    "HumanSignal",
    "Interrupted",
    "LevelSignals",
    "NodeContext",
    "NodeFailed",
    "NodeFinished",
    "NodeRetrying",
    "NodeStarted",
    "ProblemCode",
    "RetryPolicy",
    "RunEvent",
    "RunFinished",
    "RunResult",
    "RunStream",
    "StateGraph",
    "SweepReport",
    "strict_converter",
]


def __getattr__(name: str) -> object:
    # Who streams nothing does not import what streaming needs.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("strata_core.graph." + ("_stream" if name == "RunStream" else "_events")), name)
    globals()[name] = value
    return value
