"""One level of a run: a graph that goes from a node to wherever it stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import attrs

from strata_core.clock import Clock
from strata_core.codec import copy_json
from strata_core.graph._attempt import (
    NodeFailedError,
    NodeReturnError,
    RoutingError,
    as_state,
    choose_way,
    visit,
    visit_body,
)
from strata_core.graph._copying import isolate
from strata_core.graph._inside import LevelFailedError, PausedError
from strata_core.graph._journal import Journal, Position, UnsavableStateError
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._results import Completed, FailureCode, Interrupted
from strata_core.graph._stop import AnyStop, StoppedError
from strata_core.graph._waiting import TimerError, begin_wait
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision

if TYPE_CHECKING:
    from strata_core.graph._emitter import Emitter

__all__ = ["Level"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")


class Level(Generic[S]):
    """One level of a run: the outermost one (see `Run`), or one inside a node of the level around it.

    Attributes:
        plan: The graph.
        state: The last committed state.
        node: The node that runs, or runs next; None when none is left.
        attempt: Which attempt of it this is.
        inside: The level inside of that node, once it has begun and as long as the node has not committed.
        last: The node that last committed, where that is known; for people who read the log.
        committing: Where the commit that is under way leads; None when none is.
        after_wait: Whether no node has committed since a wait ended, and `on_resume` must be asked before one runs.
        path: What leads here, for `visit_key`.
        emitter: Told what happens; None when nobody streams the run.
    """

    __slots__ = (
        "after_wait",
        "attempt",
        "clock",
        "committing",
        "emitter",
        "inside",
        "journal",
        "last",
        "node",
        "path",
        "plan",
        "shown_decision",
        "shown_metadata",
        "state",
        "state_class",
        "stop",
        "thread_id",
        "trail",
    )

    def __init__(
        self,
        plan: Plan[S],
        thread_id: str,
        journal: Journal[S],
        stop: AnyStop,
        metadata: Mapping[str, str],
        clock: Clock,
        path: str = "",
        emitter: Emitter | None = None,
    ) -> None:
        self.plan = plan
        self.thread_id = thread_id
        self.journal = journal
        self.trail = journal.trail
        self.stop = stop
        self.clock = clock
        self.path = path
        self.emitter = emitter
        self.after_wait = False
        self.state_class = plan.codec.cls
        self.shown_metadata = metadata
        self.shown_decision: HumanDecision | None = None
        self.attempt = 1
        self.node: Node | None = None
        self.last: str | None = None
        self.inside: Level[Any] | None = None
        self.state = cast("S", None)
        self.committing: tuple[Node | None, S] | None = None

    def decide(self, decision: HumanDecision | None) -> None:
        """Let rows carry the decision, and nodes see it: a copy, since they could change the overrides in it."""
        self.journal.decision = decision
        if decision is not None:
            decision = attrs.evolve(decision, overrides=copy_json(dict(decision.overrides)))
        self.shown_decision = decision

    async def walk(self) -> Completed[S] | Interrupted[S]:
        """Run from `node` on with `state`.

        Raises:
            StoppedError: The run has to stop; `node` has not committed.
            LevelFailedError: `node` has failed, and nothing takes over.
        """
        emitter = self.emitter
        while True:
            node = self.node
            if node is None:
                return Completed(self.thread_id, self.state)
            if self.stop.check() is not None:
                raise StoppedError
            try:
                result = await (self._step(node) if emitter is None else emitter.step(self, node, self._step))
            except NodeFailedError as error:
                if node.fallback is not None:
                    _logger.warning(
                        "thread %r: node %r failed (%s), node %r takes over",
                        self.thread_id, node.name, type(error.cause).__name__, node.fallback.name,
                    )  # fmt: skip
                    self.node, self.inside = node.fallback, None
                    continue
                raise _failed(node, error) from error
            except RoutingError as error:
                raise LevelFailedError(FailureCode.ROUTING_FAILED, str(error), error.__cause__ or error) from error
            except TimerError as error:
                raise LevelFailedError(FailureCode.TIMER_FAILED, str(error), error.__cause__ or error) from error
            except UnsavableStateError as error:
                text = f"the state that node {node.name!r} returned cannot be saved"
                raise LevelFailedError(FailureCode.INVALID_STATE, text, error.cause) from error
            except PausedError as paused:
                inner = paused.interrupted
                path = (node.name, *inner.waiting_at)
                return Interrupted(self.thread_id, node.name, node.name, self.state, path, inner.wait)
            if result is not None:
                return result

    async def _step(self, node: Node) -> Completed[S] | Interrupted[S] | None:
        """Run a node, choose the way on, and commit both in one row; return a result when the level stops there."""
        if node.is_plain:
            # What `visit` does, without its coroutines: most attempts of most graphs are just this.
            self.attempt = 1
            try:
                state: S = node.handler.call(isolate(self.state))
                if type(state) is not self.state_class:
                    state = await as_state(self, node, state)
            except StoppedError:
                raise
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # a node is a user's code
                state = await visit(self, node, error)
        elif node.body is None:
            state = await visit(self, node)
        else:
            state = await visit_body(self, node, node.body)
        target = node.next if node.router is None else await choose_way(self, node, node.router, state)
        journal = self.journal
        if node.pause is not None:
            wait = await begin_wait(self, node, node.pause, state)
            at = Position(node.name, None if target is None else target.name, state, wait)
            await journal.halt(CheckpointStatus.INTERRUPTED, at)
            _logger.info("thread %r waits at %r", self.thread_id, node.name)
            return Interrupted(self.thread_id, node.name, at.next, state, (node.name,), wait)
        if target is None:
            if journal.records_completion:
                await journal.halt(CheckpointStatus.COMPLETED, Position(node.name, None, state))
            return Completed(self.thread_id, state)
        if journal.every_node:
            self.committing = (target, state)
            await journal.commit(Position(node.name, target.name, state))
            self.committing = None
        else:
            self.trail.step += 1
        self.node, self.state, self.inside, self.after_wait = target, state, None, False
        return None

    def step_on(self) -> None:
        """Go on to where a commit leads that was written, although its writer was interrupted."""
        level: Level[Any] | None = self
        while level is not None:
            if level.committing is not None:
                level.node, level.state = level.committing
                level.inside, level.after_wait = None, False
                return
            level = level.inside

    @property
    def is_after_wait(self) -> bool:
        """Whether no node has committed since a wait ended, neither here nor further inside."""
        return self.after_wait and (self.inside is None or self.inside.is_after_wait)

    def standing(self, status: CheckpointStatus) -> Position[S]:
        """Return where the level stands in the middle of a step, with what stands inside of it.

        Raises:
            UnsavableStateError: A state further inside has no JSON form.
        """
        node, inside = self.node, self.inside
        if node is None:
            return Position(self.last, None, self.state)
        if inside is not None:
            return Position(node.name, node.name, self.state, None, inside.record(status))
        return Position(self.last if status is CheckpointStatus.RUNNING else node.name, node.name, self.state)

    def record(self, status: CheckpointStatus) -> Checkpoint | None:
        """Return the record of the level in the middle of a step; None when nothing is stored.

        Raises:
            UnsavableStateError: Its state, or one further inside, has no JSON form.
        """
        if not self.journal.is_stored:
            return None
        # What is left to do then is the outer node's.
        status = CheckpointStatus.COMPLETED if self.node is None else status
        return self.journal.record(status, self.standing(status))


def _failed(node: Node, error: NodeFailedError) -> LevelFailedError:
    tries = "" if error.attempts == 1 else f" after {error.attempts} attempts"
    if error.inner is not None:
        return error.inner.inside(f"{node.name!r}{tries}")
    code = FailureCode.INVALID_STATE if isinstance(error.cause, NodeReturnError) else FailureCode.NODE_FAILED
    return LevelFailedError(code, f"node {node.name!r} failed{tries}", error.cause)
