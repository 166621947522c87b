"""Strata: typed state graphs that stop, save themselves, and go on when somebody answers.

The names that most people need are here; each is imported when it is first used, so that a program that only runs a
graph does not pay for plugins, and one that only reads a store does not pay for the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strata_core.blobs import FileSystemBlobStore, InMemoryBlobStore
    from strata_core.capabilities import Capability
    from strata_core.errors import (
        ConflictError,
        CorruptCheckpointError,
        GraphValidationError,
        InvalidInputError,
        LeaseHeldError,
        LeaseLostError,
        PluginError,
        ReadOnlyError,
        RehydrationError,
        SchemaVersionError,
        StoreBusyError,
        StoreClosedError,
        StoreUnavailableError,
        StrataError,
        UnsupportedError,
        UsageError,
    )
    from strata_core.graph import (
        CancellationToken,
        Cancelled,
        CancelReason,
        CheckpointPolicy,
        CheckpointSaved,
        CompiledGraph,
        Completed,
        Emitted,
        EventSignal,
        Failed,
        FailureCode,
        HumanSignal,
        Interrupted,
        LevelSignals,
        NodeContext,
        NodeFailed,
        NodeFinished,
        NodeRetrying,
        NodeStarted,
        RetryPolicy,
        RunEvent,
        RunFinished,
        RunResult,
        RunStream,
        StateGraph,
        SweepReport,
        strict_converter,
    )
    from strata_core.opening import open_store
    from strata_core.options import Deltas, Offload, Setup
    from strata_core.records import (
        FINISHED,
        Checkpoint,
        CheckpointStatus,
        GraphIdentity,
        HumanDecision,
        Lease,
        LogEntry,
        LogPage,
        Revision,
        ThreadPage,
        ThreadQuery,
        ThreadState,
        ThreadSummary,
        Wait,
        WaitKind,
    )

_MODULES: Final = {
    "strata_core.blobs": "FileSystemBlobStore InMemoryBlobStore",
    "strata_core.capabilities": "Capability",
    "strata_core.errors": (
        "ConflictError CorruptCheckpointError GraphValidationError InvalidInputError LeaseHeldError LeaseLostError "
        "PluginError ReadOnlyError RehydrationError SchemaVersionError StoreBusyError StoreClosedError "
        "StoreUnavailableError StrataError UnsupportedError UsageError"
    ),
    "strata_core.graph": (
        "CancelReason CancellationToken Cancelled CheckpointPolicy CheckpointSaved CompiledGraph Completed Emitted "
        "EventSignal Failed FailureCode HumanSignal Interrupted LevelSignals NodeContext NodeFailed NodeFinished "
        "NodeRetrying NodeStarted RetryPolicy RunEvent RunFinished RunResult RunStream StateGraph SweepReport "
        "strict_converter"
    ),
    "strata_core.opening": "open_store",
    "strata_core.options": "Deltas Offload Setup",
    "strata_core.records": (
        "FINISHED Checkpoint CheckpointStatus GraphIdentity HumanDecision Lease LogEntry LogPage Revision ThreadPage "
        "ThreadQuery ThreadState ThreadSummary Wait WaitKind"
    ),
}
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "CancelReason",
    "CancellationToken",
    "Cancelled",
    "Capability",
    "Checkpoint",
    "CheckpointPolicy",
    "CheckpointSaved",
    "CheckpointStatus",
    "CompiledGraph",
    "Completed",
    "ConflictError",
    "CorruptCheckpointError",
    "Deltas",
    "Emitted",
    "EventSignal",
    "FINISHED",
    "Failed",
    "FailureCode",
    "FileSystemBlobStore",
    "GraphIdentity",
    "GraphValidationError",
    "HumanDecision",
    "HumanSignal",
    "InMemoryBlobStore",
    "Interrupted",
    "InvalidInputError",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
    "LevelSignals",
    "LogEntry",
    "LogPage",
    "NodeContext",
    "NodeFailed",
    "NodeFinished",
    "NodeRetrying",
    "NodeStarted",
    "Offload",
    "PluginError",
    "ReadOnlyError",
    "RehydrationError",
    "RetryPolicy",
    "Revision",
    "RunEvent",
    "RunFinished",
    "RunResult",
    "RunStream",
    "SchemaVersionError",
    "Setup",
    "StateGraph",
    "StoreBusyError",
    "StoreClosedError",
    "StoreUnavailableError",
    "StrataError",
    "SweepReport",
    "ThreadPage",
    "ThreadQuery",
    "ThreadState",
    "ThreadSummary",
    "UnsupportedError",
    "UsageError",
    "Wait",
    "WaitKind",
    "__version__",
    "open_store",
    "strict_converter",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # costs more than all of core

        return version("strata-core")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
