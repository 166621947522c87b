"""Every error a store, the engine or a plugin raises on purpose.

There is one root, `StrataError`.  Each class keeps its facts as attributes, so that nobody has to match text.  Messages
name the argument or path and the way out; they never contain state, and never a password.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strata_core.capabilities import Capability
    from strata_core.graph import GraphProblem

__all__: Final = [
    "ConflictError",
    "CorruptCheckpointError",
    "GraphValidationError",
    "InvalidInputError",
    "LeaseHeldError",
    "LeaseLostError",
    "PluginError",
    "ReadOnlyError",
    "RehydrationError",
    "SchemaVersionError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreUnavailableError",
    "StrataError",
    "UnsupportedError",
    "UsageError",
]


class StrataError(Exception):
    """The root of every error of this project."""


class InvalidInputError(StrataError, ValueError):
    """An argument breaks a rule; nothing was written.

    Attributes:
        argument: The argument or path at fault, such as ``thread_id`` or ``state.items[3].price``.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


class UsageError(StrataError):
    """An object is used in a way it does not allow, such as from another event loop."""


class StoreClosedError(UsageError):
    """The store is not open: not yet entered, or closed already."""


class ReadOnlyError(UsageError):
    """A write was asked of a store that was opened read-only; nothing was written."""


class UnsupportedError(StrataError):
    """The store does not have a capability that the call needs.

    Attributes:
        capability: The missing capability.
    """

    def __init__(self, capability: Capability, problem: str) -> None:
        super().__init__(problem)
        self.capability = capability


class ConflictError(StrataError):
    """The thread's latest checkpoint is not the expected one; nothing was written.

    Attributes:
        thread_id: The thread.
        latest: The sequence of its latest checkpoint; None when it has none.
    """

    def __init__(self, thread_id: str, latest: int | None, problem: str) -> None:
        super().__init__(f"thread {thread_id!r} {problem}")
        self.thread_id = thread_id
        self.latest = latest


class LeaseLostError(ConflictError):
    """The lease is not held any more: it expired, was released, or was taken over."""


class LeaseHeldError(ConflictError):
    """Somebody holds a live lease on the thread.

    Attributes:
        owner: Who holds it, for people to read.
    """

    def __init__(self, thread_id: str, latest: int | None, owner: str) -> None:
        super().__init__(thread_id, latest, f"is held by {owner!r}")
        self.owner = owner


class StoreUnavailableError(StrataError):
    """The storage did not answer, or not in time.

    Attributes:
        maybe_written: True when the outcome of a write is unknown.  Repeat the call with the same ``write_id``: the
            store recognises a write that had been done.
    """

    def __init__(self, problem: str, *, maybe_written: bool = False) -> None:
        super().__init__(problem)
        self.maybe_written = maybe_written


class StoreBusyError(StoreUnavailableError):
    """The storage stayed locked by somebody else for longer than the store waits; nothing was written."""


class CorruptCheckpointError(StrataError):
    """A stored checkpoint cannot be read as written: a missing or false blob, a broken chain, malformed JSON.

    Attributes:
        thread_id: The thread.
        sequence: The checkpoint; None when not even that is known.
        next_cursor: From a listing: the cursor of the page behind this thread, if the store gives one.
    """

    next_cursor: str | None = None

    def __init__(self, thread_id: str, sequence: int | None, problem: str) -> None:
        where = f"checkpoint {thread_id!r}" + ("" if sequence is None else f" #{sequence}")
        super().__init__(f"{where} {problem}")
        self.thread_id = thread_id
        self.sequence = sequence


class SchemaVersionError(StrataError):
    """A record or a database has a format version that this release cannot read or write.

    Attributes:
        found: The version found, as text; ``none`` for a database that was never set up.
        supported: The newest version this release knows.
        thread_id: From a listing: the thread whose record it is.
        next_cursor: From a listing: the cursor of the page behind this thread, if the store gives one.
    """

    thread_id: str | None = None
    next_cursor: str | None = None

    def __init__(self, problem: str, *, found: str, supported: str) -> None:
        super().__init__(problem)
        self.found = found
        self.supported = supported


class RehydrationError(StrataError):
    """A stored state does not fit the state type.

    Attributes:
        path: Where it does not fit, such as ``state.items[3].price``.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class GraphValidationError(StrataError):
    """A graph does not compile.

    Attributes:
        problems: Every problem found, as ``GraphProblem`` records.
    """

    def __init__(self, problems: Sequence[GraphProblem]) -> None:
        super().__init__("the graph is not valid:\n" + "\n".join(f"- {problem}" for problem in problems))
        self.problems = tuple(problems)


class PluginError(StrataError):
    """A plugin is missing, blocked, broken, or disagrees with another one.

    Attributes:
        distributions: The distributions at fault, as ``name version``; empty when none is installed.
    """

    def __init__(self, problem: str, *, distributions: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.distributions = tuple(distributions)
