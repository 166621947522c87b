"""One run of a graph, from a node to wherever it stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, cast

import attrs

from strata_core.codec import copy_json
from strata_core.errors import ConflictError
from strata_core.graph._attempt import NodeFailedError, NodeReturnError, RoutingError, as_state, choose_way, visit
from strata_core.graph._copying import isolate
from strata_core.graph._hooks import ResumeCheckError, announce, check_resumed
from strata_core.graph._journal import Journal, Position, RefusedError, SupersededError, UnsavableStateError, Writing
from strata_core.graph._keys import AFTER_WAIT, CANCEL_DETAIL, CANCEL_REASON, ERROR, VISIT, pack_visit
from strata_core.graph._nodes import Node
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse_existing
from strata_core.graph._results import Cancelled, CancelReason, Completed, Failed, FailureCode, Interrupted, RunResult
from strata_core.graph._stop import Stop, StoppedError
from strata_core.graph._texts import describe, fit
from strata_core.graph._waiting import TimerError, begin_wait
from strata_core.records import CheckpointStatus, HumanDecision

__all__ = ["Run"]

S = TypeVar("S")

_log: Final = logging.getLogger("strata_core.graph")

_GRACE: Final = 5.0
"""How many seconds a run that breaks off gives the store to take the `cancelled` checkpoint, or the lease back."""


class Run(Generic[S]):
    """One run of a graph.

    Attributes:
        plan: The graph.
        state: The last committed state.
        node: The node that runs, or runs next; None when none is left.
        attempt: Which attempt of it this is.
        after_wait: Whether no node has committed since a wait ended, and `on_resume` must be asked before one runs.
    """

    __slots__ = (
        "_next",
        "after_wait",
        "attempt",
        "clock",
        "journal",
        "node",
        "plan",
        "shown_decision",
        "shown_metadata",
        "state",
        "state_class",
        "stop",
        "thread_id",
    )

    def __init__(
        self, plan: Plan[S], thread_id: str, journal: Journal[S], stop: Stop, metadata: Mapping[str, str]
    ) -> None:
        self.plan = plan
        self.thread_id = thread_id
        self.journal = journal
        self.stop = stop
        self.clock = plan.clock
        self.after_wait = False
        self.state_class = plan.codec.cls
        self.shown_metadata = MappingProxyType(metadata)
        self.shown_decision: HumanDecision | None = None
        self.attempt = 1
        self.node: Node | None = None
        self.state = cast("S", None)
        self._next: tuple[Node | None, S] | None = None

    def show(self, decision: HumanDecision | None) -> None:
        """Let nodes see the decision: a copy, since they could change the overrides in it."""
        if decision is not None:
            decision = attrs.evolve(decision, overrides=copy_json(dict(decision.overrides)))
        self.shown_decision = decision

    async def go(self) -> RunResult[S]:
        """Run from `node` on with `state`, and return where that ends."""
        if self.after_wait and (early := await self._check_resumed()) is not None:
            return early
        while True:
            node = self.node
            if node is None:
                return Completed(self.thread_id, self.state)
            if self.stop.check() is not None:
                return await self._cancel(node)
            try:
                result = await self._step(node)
            except StoppedError:
                return await self._cancel(self.node or node)
            except NodeFailedError as error:
                if node.fallback is not None:
                    _log.warning(
                        "thread %r: node %r failed (%s), node %r takes over",
                        self.thread_id, node.name, type(error.cause).__name__, node.fallback.name,
                    )  # fmt: skip
                    self.node = node.fallback
                    continue
                return await self._fail_node(node, error)
            except RoutingError as error:
                cause = error.__cause__ or error
                return await self._fail(node, FailureCode.ROUTING_FAILED, str(error), cause)
            except TimerError as error:
                return await self._fail(node, FailureCode.TIMER_FAILED, str(error), error.__cause__ or error)
            except UnsavableStateError as error:
                text = f"the state that node {node.name!r} returned cannot be saved"
                return await self._fail(node, FailureCode.INVALID_STATE, text, error.cause)
            if result is not None:
                return result

    async def _check_resumed(self) -> RunResult[S] | None:
        """Let `on_resume` look at the state first; return a result when the run stops there."""
        node, check = self.node, self.plan.on_resume
        if node is None or check is None:
            return None
        if self.stop.check() is not None:
            return await self._cancel(node)
        try:
            self.state = await check_resumed(self, check, node)
        except StoppedError:
            return await self._cancel(node)
        except ResumeCheckError as error:
            text = f"on_resume failed before node {node.name!r}"
            return await self._fail(node, FailureCode.RESUME_CHECK_FAILED, text, error.cause)
        return None

    async def _step(self, node: Node) -> RunResult[S] | None:
        """Run a node, choose the way on, and commit both in one row; return a result when the run stops there."""
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
        else:
            state = await visit(self, node)
        target = node.next if node.router is None else await choose_way(self, node, node.router, state)
        journal = self.journal
        if node.pause is not None:
            wait = await begin_wait(self, node, node.pause, state)
            at = Position(node.name, None if target is None else target.name, state, wait)
            await journal.halt(CheckpointStatus.INTERRUPTED, at)
            _log.info("thread %r waits at %r", self.thread_id, node.name)
            return Interrupted(self.thread_id, node.name, at.next, state, (node.name,), wait)
        if target is None:
            if journal.records_completion:
                await journal.halt(CheckpointStatus.COMPLETED, Position(node.name, None, state))
            return Completed(self.thread_id, state)
        if journal.every_node:
            self._next = (target, state)
            await journal.commit(Position(node.name, target.name, state))
            self._next = None
        else:
            journal.step += 1
        self.node, self.state, self.after_wait = target, state, False
        return None

    async def _cancel(self, node: Node) -> RunResult[S]:
        reason = self.stop.check() or CancelReason.CANCELLED
        detail = self.stop.detail
        _log.info("thread %r stopped before %r committed: %s", self.thread_id, node.name, reason.value)
        if reason is not CancelReason.LEASE_LOST:
            await self._halt_cancelled(node, reason, detail)
        return Cancelled(self.thread_id, reason, node.name, detail)

    async def _halt_cancelled(self, node: Node, reason: CancelReason, detail: str | None) -> None:
        extra = {CANCEL_REASON: reason.value}
        if detail:
            extra[CANCEL_DETAIL] = fit(detail)
        await self._halt(CheckpointStatus.CANCELLED, node, extra)

    async def _fail_node(self, node: Node, error: NodeFailedError) -> RunResult[S]:
        code = FailureCode.INVALID_STATE if isinstance(error.cause, NodeReturnError) else FailureCode.NODE_FAILED
        tries = "" if error.attempts == 1 else f" after {error.attempts} attempts"
        return await self._fail(node, code, f"node {node.name!r} failed{tries}", error.cause)

    async def _fail(self, node: Node, code: FailureCode, message: str, error: BaseException) -> RunResult[S]:
        _log.warning("thread %r failed at %r: %s", self.thread_id, node.name, type(error).__name__)
        detail = describe(error)
        await self._halt(CheckpointStatus.FAILED, node, {ERROR: fit(detail)})
        return Failed(self.thread_id, code, message, node.name, detail, error)

    async def _halt(self, status: CheckpointStatus, node: Node, extra: dict[str, str]) -> None:
        journal = self.journal
        if self.plan.uses_context:
            extra[VISIT] = pack_visit(journal.anchor, journal.step)
        if self.after_wait and self.plan.on_resume is not None:
            extra[AFTER_WAIT] = "true"
        try:
            await journal.halt(status, Position(node.name, node.name, self.state), extra)
        except UnsavableStateError as error:
            # Only without a row for every node can a run come this far with a state that has no JSON form.
            _log.error(
                "thread %r: its %s checkpoint cannot be saved: %s", self.thread_id, status.value, error.cause.argument
            )

    async def guarded(self, begin: Any) -> RunResult[S]:
        """Await `begin`, which takes the thread, then run; leave the thread in order however that ends."""
        try:
            early: RunResult[S] | None = await begin
            result = await self.go() if early is None else early
        except SupersededError:
            return await self._superseded()
        except asyncio.CancelledError:
            await self._abandon()
            raise
        except Exception:
            await self._release()
            raise
        finally:
            self.stop.close()
            await self.journal.close()
        tell = self.plan.on_interrupted
        if tell is not None and self.journal.is_stored and isinstance(result, Interrupted):
            await announce(tell, result, self.stop)
        return result

    async def _superseded(self) -> RunResult[S]:
        node = None if self.node is None else self.node.name
        if self.journal.every_node:
            return Cancelled(self.thread_id, CancelReason.LEASE_LOST, node)
        if self.journal.fresh:
            return refuse_existing(self.thread_id, node)
        latest = await self.journal.latest()
        if latest is not None and latest.status is CheckpointStatus.ENDED:
            return Cancelled(self.thread_id, CancelReason.ENDED, node)
        text = f"another writer went on with thread '{self.thread_id}'; this run stopped and wrote nothing more"
        return Failed(self.thread_id, FailureCode.SUPERSEDED, text, node)

    async def _abandon(self) -> None:
        """Write the `cancelled` checkpoint although the run's own task is cancelled, within bounds."""
        self.stop.token.cancel()
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._write_abandoned())
        until = loop.time() + _GRACE
        while not task.done() and (left := until - loop.time()) > 0:
            try:
                await asyncio.wait({task}, timeout=left)
            except asyncio.CancelledError:
                continue  # the cancellation is on its way to the caller already
        if not task.done():
            task.cancel()
            _log.error("thread %r: its cancelled checkpoint was not saved within %s s", self.thread_id, _GRACE)

    async def _release(self) -> None:
        """Give the lease back although the store has failed, so that nobody has to wait until it expires."""
        try:
            async with asyncio.timeout(_GRACE):
                await self.journal.release()
        except Exception as error:  # noqa: BLE001  # the error that led here must not be replaced
            _log.warning("thread %r: its lease was not given back: %s", self.thread_id, type(error).__name__)

    async def _write_abandoned(self) -> None:
        try:
            settled = await self.journal.settle()
            if settled is Writing.LAST:
                return
            if settled is Writing.STEP and self._next is not None:
                self.node, self.state = self._next
                self.after_wait = False
            if self.stop.check() is CancelReason.LEASE_LOST:
                await self._release()  # whoever wrote without the lease has not taken it
            elif self.node is not None:
                await self._halt_cancelled(self.node, CancelReason.CANCELLED, None)
        except (SupersededError, RefusedError, ConflictError):
            await self._release()  # the thread is somebody else's, but its lease may still be ours
        except Exception as error:  # noqa: BLE001  # the caller gets the CancelledError; this must not replace it
            _log.error("thread %r: its cancelled checkpoint was not saved: %s", self.thread_id, type(error).__name__)
            await self._release()
