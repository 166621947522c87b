"""One run of a graph, from a node to wherever it stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from strata_core.errors import ConflictError
from strata_core.graph._descent import Place
from strata_core.graph._hooks import ResumeCheckError, announce, check_resumed
from strata_core.graph._inside import LevelFailedError
from strata_core.graph._journal import Journal, RefusedError, SupersededError, UnsavableStateError, Writing
from strata_core.graph._keys import AFTER_WAIT, CANCEL_DETAIL, CANCEL_REASON, ERROR, VISIT, pack_visit
from strata_core.graph._level import Level
from strata_core.graph._plan import Plan
from strata_core.graph._refusals import refuse_existing
from strata_core.graph._results import Cancelled, CancelReason, Failed, FailureCode, Interrupted, RunResult
from strata_core.graph._stop import Stop, StoppedError
from strata_core.graph._subgraph import go_inside
from strata_core.graph._texts import describe, fit
from strata_core.records import CheckpointStatus

if TYPE_CHECKING:
    from strata_core.graph._emitter import Emitter

__all__ = ["Run"]

S = TypeVar("S")

_logger: Final = logging.getLogger("strata_core.graph")

_GRACE: Final = 5.0
"""How many seconds a run that breaks off gives the store to take the `cancelled` checkpoint, or the lease back."""


class Run(Level[S]):
    """The outermost level of a run, which takes the thread, and leaves it in order."""

    __slots__ = ("_watch",)

    def __init__(
        self,
        plan: Plan[S],
        thread_id: str,
        journal: Journal[S],
        stop: Stop,
        metadata: Mapping[str, str],
        emitter: Emitter | None = None,
    ) -> None:
        super().__init__(plan, thread_id, journal, stop, MappingProxyType(metadata), plan.clock, emitter=emitter)
        self._watch = stop

    def stand(self, places: Sequence[Place[Any]], *, after_wait: bool) -> None:
        """Stand where a thread goes on, on every level."""
        level: Level[Any] = self
        for place in places:
            if place.around is not None:
                level = go_inside(level, place.around, place.plan, place.state)
            level.node, level.state = place.node, place.state
            level.decide(place.decision)
            level.after_wait = after_wait

    def note_last(self, name: str | None) -> None:
        """Note which node of the innermost level has committed last, for the row of a resume."""
        level: Level[Any] = self
        while level.inside is not None:
            level = level.inside
        level.last = name

    async def go(self) -> RunResult[S]:
        """Run from `node` on with `state`, and return where that ends."""
        try:
            if self.after_wait:
                await self._check_resumed()
            return await self.walk()
        except StoppedError:
            return await self._cancel()
        except LevelFailedError as error:
            return await self._fail(error)

    async def _check_resumed(self) -> None:
        """Let `on_resume` look at the state first.

        Raises:
            StoppedError: The run has to stop.
            LevelFailedError: It has failed.
        """
        node, check = self.node, self.plan.on_resume
        if node is None or check is None:
            return
        if self.stop.check() is not None:
            raise StoppedError
        try:
            self.state = await check_resumed(self, check, node)
        except ResumeCheckError as error:
            text = f"on_resume failed before node {node.name!r}"
            raise LevelFailedError(FailureCode.RESUME_CHECK_FAILED, text, error.cause) from error

    async def _cancel(self) -> RunResult[S]:
        node = self._name
        reason = self.stop.check() or CancelReason.CANCELLED
        detail = self._watch.detail
        _logger.info("thread %r stopped before %r committed: %s", self.thread_id, node, reason.value)
        if reason is not CancelReason.LEASE_LOST:
            await self._halt_cancelled(reason, detail)
        return Cancelled(self.thread_id, reason, node, detail)

    async def _halt_cancelled(self, reason: CancelReason, detail: str | None) -> None:
        extra = {CANCEL_REASON: reason.value}
        if detail:
            extra[CANCEL_DETAIL] = fit(detail)
        await self._halt(CheckpointStatus.CANCELLED, extra)

    async def _fail(self, error: LevelFailedError) -> RunResult[S]:
        node, cause = self._name, error.cause
        _logger.warning("thread %r failed at %r: %s", self.thread_id, node, type(cause).__name__)
        detail = describe(cause)
        await self._halt(CheckpointStatus.FAILED, {ERROR: fit(detail)})
        return Failed(self.thread_id, error.code, error.text, node, detail, cause)

    @property
    def _name(self) -> str | None:
        return None if self.node is None else self.node.name

    async def _halt(self, status: CheckpointStatus, extra: dict[str, str]) -> None:
        if self.plan.uses_context:
            extra[VISIT] = pack_visit(self.trail.anchor, self.trail.step)
        if self.plan.on_resume is not None and self.is_after_wait:
            extra[AFTER_WAIT] = "true"
        try:
            await self.journal.halt(status, self.standing(status), extra)
        except UnsavableStateError as error:
            # Only without a row for every node can a run come this far with a state that has no JSON form.
            _logger.error(
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
            self._watch.close()
            await self.journal.close()
        if isinstance(result, Interrupted) and self.journal.is_stored:
            result = attrs.evolve(result, revision=self.journal.revision)
            if self.plan.on_interrupted is not None:
                await announce(self.plan.on_interrupted, result, self._watch)
        return result

    async def _superseded(self) -> RunResult[S]:
        node = self._name
        if self.journal.every_node:
            return Cancelled(self.thread_id, CancelReason.LEASE_LOST, node, self._watch.detail)
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
            _logger.error("thread %r: its cancelled checkpoint was not saved within %s s", self.thread_id, _GRACE)

    async def _release(self) -> None:
        """Give the lease back although the store has failed, so that nobody has to wait until it expires."""
        try:
            async with asyncio.timeout(_GRACE):
                await self.journal.release()
        except Exception as error:  # noqa: BLE001  # the error that led here must not be replaced
            _logger.warning("thread %r: its lease was not given back: %s", self.thread_id, type(error).__name__)

    async def _write_abandoned(self) -> None:
        try:
            settled = await self.journal.settle()
            if settled is Writing.LAST:
                return
            if settled is Writing.STEP:
                self.step_on()
            if self.stop.check() is CancelReason.LEASE_LOST:
                await self._release()  # whoever wrote without the lease has not taken it
            elif self.node is not None:
                await self._halt_cancelled(CancelReason.CANCELLED, None)
        except (SupersededError, RefusedError, ConflictError):
            await self._release()  # the thread is somebody else's, but its lease may still be ours
        except Exception as error:  # noqa: BLE001  # the caller gets the CancelledError; this must not replace it
            _logger.error("thread %r: its cancelled checkpoint was not saved: %s", self.thread_id, type(error).__name__)
            await self._release()
