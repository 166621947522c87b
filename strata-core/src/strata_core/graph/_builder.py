"""Building a graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from strata_core._statuses import WaitKind
from strata_core._validation import check_owner, check_thread_id, check_ttl
from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.errors import GraphValidationError, InvalidInputError
from strata_core.graph._bodies import BodyCalls
from strata_core.graph._drafts import Draft, EdgeDraft, NodeDraft, RouteDraft, WaitDraft
from strata_core.graph._handlers import check_hook
from strata_core.graph._policy import CheckpointPolicy, check_policy
from strata_core.graph._retry import RetryPolicy
from strata_core.graph._state import StateCodec, state_class

# What checks and runs a graph is imported by `compile`: it takes as long as all the rest.
if TYPE_CHECKING:
    from strata_core.graph._compiled import CompiledGraph
    from strata_core.graph._context import NodeContext
    from strata_core.graph._results import Interrupted
    from strata_core.graph._upcasting import Upcast
    from strata_core.records import GraphIdentity

__all__ = ["StateGraph"]

S = TypeVar("S")

_LEASE_TTL: Final = timedelta(seconds=30)


class _Converter(Protocol):
    """What a cattrs converter offers to the engine."""

    def structure(self, obj: Any, cl: Any) -> Any: ...

    def unstructure(self, obj: Any, unstructure_as: Any = None) -> Any: ...


class StateGraph(BodyCalls[S]):
    """Builds a graph whose nodes pass on one typed state.

    Every method returns the builder, so that calls chain.  Nothing is checked before `compile`, which reports all
    problems at once.

    Args:
        state_type: An attrs class, a dataclass, a `TypedDict`, a `msgspec.Struct`, a `pydantic.BaseModel`, ``dict``,
            or ``dict[str, X]``: what becomes a JSON object.  ``STATE.md``, beside the user guide, lists the types of
            its fields, and their JSON forms.
        converter: A cattrs converter that turns states into JSON values and back; None for the strict one.  To add
            types of your own, register hooks with a `strict_converter`, which goes on to refuse what would not read
            back as itself.  Any other converter reads by its own rules, which may convert; what it writes and does not
            read back equal is refused when it is saved.

    Raises:
        InvalidInputError: `state_type` is none of these.
    """

    def __init__(self, state_type: type[S], *, converter: _Converter | None = None) -> None:
        state_class(state_type)
        self._state_type: Any = state_type
        self._converter = converter
        self._draft = Draft()

    def add_node(
        self,
        name: str,
        handler: Callable[[S], S | Awaitable[S]] | Callable[[S, NodeContext[S]], S | Awaitable[S]],
        *,
        retry: RetryPolicy | None = None,
        fallback: str | None = None,
        blocking: bool = False,
    ) -> StateGraph[S]:
        """Add a node.

        Args:
            name: Its name, under the rules of a thread ID.
            handler: ``def`` or ``async def``, of ``(state)`` or ``(state, ctx)``; returns the next state.  A context
                is passed when it has two required positional parameters.  A ``def`` handler runs on the event loop.
            retry: When it is tried again; None for never.
            fallback: The node that takes over from the last committed state when the attempts are used up.
            blocking: Run a ``def`` handler in a thread, because it blocks.  A thread cannot be interrupted: a token
                or a deadline takes effect when the handler returns, unless that looks at ``ctx.cancellation``.  Only
                a run whose lease is lost does not wait for it: what the handler returns cannot count any more.
        """
        self._draft.nodes.append(NodeDraft(name, handler, retry, fallback, blocking))
        return self

    def add_edge(self, source: str, target: str) -> StateGraph[S]:
        """Let `source` go on at `target`.  A node without a way on is an end of the graph."""
        self._draft.edges.append(EdgeDraft(source, target))
        return self

    def add_conditional_edge(
        self,
        source: str,
        router: Callable[[S], str | Awaitable[str]] | Callable[[S, NodeContext[S]], str | Awaitable[str]],
        targets: Collection[str],
    ) -> StateGraph[S]:
        """Let a function decide where `source` goes on.

        Choosing the way is part of the node's step: when the router fails, the node has not committed.

        **On a boundary node the router is asked before the person answers**: the next node is worked out when the run
        stops, and saved with it.  The router sees neither the decision nor the overrides of the answer, and an approval
        goes on at the node that is saved.  To decide by the answer, put a node behind the boundary and give that one
        the conditional edge.

        Args:
            source: The node that is left.
            router: ``def`` or ``async def``, of ``(state)`` or ``(state, ctx)``; returns a name in `targets`.
            targets: All the nodes it may name: a list or another collection, not one str.
        """
        self._draft.routes.append(RouteDraft(source, router, targets))
        return self

    def add_interrupt_boundary(
        self,
        node: str,
        *,
        on_reject: str | None = None,
        timeout: timedelta | None = None,
        on_timeout: str | None = None,
    ) -> StateGraph[S]:
        """Stop after `node` until a person answers.

        **Without `on_reject` a rejection does not stop the thread**: it goes on at the next node, exactly as an
        approval does, and only ``ctx.decision.is_approved`` tells the two apart.  Where the next node sends the money,
        give `on_reject`, or look at the decision there.

        The next node is worked out when the run stops: a conditional edge of `node` decides before the person answers
        (see `add_conditional_edge`).

        Args:
            node: The node whose work the person reviews.
            on_reject: The node at which a rejection goes on; None for the one at which an approval does.
            timeout: How long the person has, counted from the stop; None for ever.  Then the thread is due, and the
                next `wake_due` times it out; until it does, the person may still answer.
            on_timeout: The node at which it goes on then; None to end the thread, with the reason `TIMED_OUT`.  Nothing
                is decided by a timeout: ``ctx.decision`` stays that of an earlier boundary, if there was one, and only
                ``ctx.decision.boundary`` tells that it is not about this one.
        """
        self._draft.waits.append(WaitDraft(WaitKind.PERSON, node, timeout, on_timeout, on_reject))
        return self

    def add_wait_for_event(
        self, node: str, event_type: str, *, timeout: timedelta | None = None, on_timeout: str | None = None
    ) -> StateGraph[S]:
        """Stop after `node` until an event of that type is signalled (`CompiledGraph.signal`).

        The next node is worked out when the run stops, as at a boundary.  A signal that comes earlier is refused: let
        `node` ask for the event, or look whether it has happened already.

        Args:
            node: The node after which the thread waits.
            event_type: Which event, under the rules of a thread ID.  Compared exactly.
            timeout: How long to wait, counted from the stop; None for ever.  Then the thread is due, and the next
                `wake_due` times it out; until it does, the event is still taken.
            on_timeout: The node at which it goes on then; None to end the thread, with the reason `TIMED_OUT`.
        """
        self._draft.waits.append(WaitDraft(WaitKind.EVENT, node, timeout, on_timeout, event_type=event_type))
        return self

    def add_timer(
        self,
        node: str,
        delay: timedelta
        | Callable[[S], timedelta | datetime | Awaitable[timedelta | datetime]]
        | Callable[[S, NodeContext[S]], timedelta | datetime | Awaitable[timedelta | datetime]],
    ) -> StateGraph[S]:
        """Stop after `node` until a time has come, and the next `wake_due` goes on with the thread.

        Args:
            node: The node after which the thread waits.
            delay: How long, counted from the stop; or a function of the state that `node` has returned, as a router
                is one, that tells how long, or until when as an aware datetime.  A time that has passed is due at
                once.  Asking it is part of the node's step: when it fails, or gives anything else or a negative
                delay, the node has not committed, and the thread fails with `TIMER_FAILED`.
        """
        self._draft.waits.append(WaitDraft(WaitKind.TIMER, node, delay))
        return self

    def set_entry(self, name: str) -> StateGraph[S]:
        """Let runs begin at `name` instead of the first node added."""
        self._draft.entries.append(name)
        return self

    def compile(
        self,
        *,
        identity: GraphIdentity | None = None,
        checkpointing: CheckpointPolicy = CheckpointPolicy.BOUNDARIES,
        upcast: Upcast | None = None,
        lease_ttl: timedelta = _LEASE_TTL,
        owner: str | None = None,
        completion_record: bool = False,
        on_resume: (
            Callable[[S], S | Awaitable[S | None] | None]
            | Callable[[S, NodeContext[S]], S | Awaitable[S | None] | None]
            | None
        ) = None,
        on_interrupted: Callable[[Interrupted[S]], object] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> CompiledGraph[S]:
        """Check the graph and return it ready to run; the builder can be used on.

        Args:
            identity: Stamped on every checkpoint.  A call that goes on with a thread of another graph ID, or ends it,
                is refused, and calls on many threads take only those of this graph; `run` does not ask.
            checkpointing: When runs write checkpoints; also decides whether finished threads can be purged.
            upcast: Turns the saved JSON state of another version of this graph (its second argument) into one of this
                version; called whenever a thread of that version goes on, however that comes about, and for a newer
                version as well.  Or steps, by version: each a function of the state that leads to the next one, the
                last of them to this version; a thread of a version without a step is refused.  What it raises, or
                returns and is no JSON object, refuses the call with `REHYDRATION_FAILED`, and the thread stays as it
                is.  Without it, a state of another version is read as it is, if it fits.
            lease_ttl: How long a lease of `CheckpointPolicy.EVERY_NODE` lives; renewed at a third of that.
            owner: The name under which leases are taken, for people; None for the host and process.
            completion_record: Let `BOUNDARIES` write `completed` when a run comes to an end of the graph, also one that
                never stopped: finished threads can then be purged, and `if_exists="error"` knows them.  It is written
                only if nobody has gone on with the thread meanwhile.  `EVERY_NODE` does this anyway.
            on_resume: Checks the state again before the first node after a wait, for prices, stock or permissions that
                may have changed meanwhile.  ``def`` (on the event loop) or ``async def``, of ``(state)`` or ``(state,
                ctx)``; `ctx.node` is the node that is next, `ctx.decision` the answer.  It returns the state that this
                node begins with, or None to leave it as it is; a change that is not returned is lost, and what is
                returned is saved when the node commits.  When it raises, the thread has failed at that node, with
                `RESUME_CHECK_FAILED`, and keeps the answer: a resume with None, or with a correction, checks again.
                It is called however the wait ended: an approval, a rejection, an event, a timer, a timeout.  As long
                as the node has not committed, it is called whenever that is entered anew, after a failure, a
                cancellation or the death of the process; not for the retries of a run, nor for later nodes.
            on_interrupted: Told that a thread waits, with the `Interrupted` that the call returns: to send the mail or
                the message that somebody must answer.  ``def`` (on the event loop) or ``async def``.  Called after the
                checkpoint is saved, whether a run, an answer, a wake or a recovery came to the wait, and awaited before
                the call returns; neither deadline nor token interrupts it.  What it raises is logged, and changes
                neither the result nor the thread.  A process that dies just then has not called it: for everybody who
                must answer, list the interrupted threads.  Not called without a store.
            clock: Tells the time and waits.

        Raises:
            GraphValidationError: The graph is not valid; `problems` holds every problem.
            InvalidInputError: An argument breaks a rule.
        """
        if identity is not None:
            from strata_core.records import GraphIdentity

            if not isinstance(identity, GraphIdentity):
                raise InvalidInputError("identity", f"must be a GraphIdentity, not {type(identity).__name__}")
            check_thread_id(identity.id, "identity.id")
            check_thread_id(identity.version, "identity.version")
        check_policy(checkpointing)
        if upcast is not None:
            from strata_core.graph._upcasting import checked_upcast

            upcast = checked_upcast(upcast, None if identity is None else identity.version)
        check_ttl(lease_ttl, "lease_ttl")
        if owner is not None:
            check_owner(owner)
        if type(completion_record) is not bool:
            raise InvalidInputError("completion_record", f"must be a bool, not {type(completion_record).__name__}")
        check = None if on_resume is None else check_hook("on_resume", on_resume)
        announce = None if on_interrupted is None else check_hook("on_interrupted", on_interrupted)
        if announce is not None and announce.wants_context:
            raise InvalidInputError("on_interrupted", "requires two parameters, and is given one: the Interrupted")
        from strata_core.graph._compiled import CompiledGraph
        from strata_core.graph._linking import link
        from strata_core.graph._plan import Plan
        from strata_core.graph._problems import GraphProblem, ProblemCode
        from strata_core.graph._type_problems import find_type_problems
        from strata_core.graph._validate import find_problems

        problems = find_problems(self._draft)
        problems += [
            GraphProblem(ProblemCode.UNSUPPORTED_TYPE, None, f"{path}: {problem}")
            for path, problem in find_type_problems(self._state_type, self._converter)
        ]
        if problems:
            raise GraphValidationError(problems)
        entry, nodes = link(self._draft)
        plan: Plan[S] = Plan(
            nodes=nodes,
            entry=entry,
            codec=StateCodec(self._state_type, self._converter),
            identity=identity,
            checkpointing=checkpointing,
            upcast=upcast,
            lease_ttl=lease_ttl,
            owner=owner,
            completion_record=completion_record,
            on_resume=check,
            on_interrupted=announce,
            clock=clock,
        )
        return CompiledGraph(plan)
