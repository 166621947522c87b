"""Typed state graphs: build, compile, run, stop for a person, resume.

Each name is imported when it is first used, and what runs a graph when the first one is compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strata_core.graph._builder import StateGraph
    from strata_core.graph._cancellation import CancellationToken
    from strata_core.graph._compiled import CompiledGraph
    from strata_core.graph._context import NodeContext
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
    from strata_core.graph._policy import CheckpointPolicy
    from strata_core.graph._problems import GraphProblem, ProblemCode
    from strata_core.graph._results import (
        Cancelled,
        CancelReason,
        Completed,
        Failed,
        FailureCode,
        Interrupted,
        RunResult,
    )
    from strata_core.graph._retry import RetryPolicy
    from strata_core.graph._signals import EventSignal, HumanSignal, LevelSignals
    from strata_core.graph._state import strict_converter
    from strata_core.graph._stream import RunStream
    from strata_core.graph._sweep import SweepReport

_MODULES: Final = {
    "_builder": "StateGraph",
    "_cancellation": "CancellationToken",
    "_compiled": "CompiledGraph",
    "_context": "NodeContext",
    "_events": "CheckpointSaved Emitted NodeFailed NodeFinished NodeRetrying NodeStarted RunEvent RunFinished",
    "_policy": "CheckpointPolicy",
    "_problems": "GraphProblem ProblemCode",
    "_results": "CancelReason Cancelled Completed Failed FailureCode Interrupted RunResult",
    "_retry": "RetryPolicy",
    "_signals": "EventSignal HumanSignal LevelSignals",
    "_state": "strict_converter",
    "_stream": "RunStream",
    "_sweep": "SweepReport",
}
_HOMES: Final = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
