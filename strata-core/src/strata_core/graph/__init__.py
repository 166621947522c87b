"""Typed state graphs: build, compile, run, stop for a person, resume."""

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

__all__ = [
    "CancelReason",
    "CancellationToken",
    "Cancelled",
    "CheckpointPolicy",
    "CompiledGraph",
    "Completed",
    "EventSignal",
    "Failed",
    "FailureCode",
    "GraphProblem",
    "HumanSignal",
    "Interrupted",
    "LevelSignals",
    "NodeContext",
    "ProblemCode",
    "RetryPolicy",
    "RunResult",
    "StateGraph",
    "SweepReport",
    "strict_converter",
]
