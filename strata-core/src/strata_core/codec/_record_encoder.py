"""A checkpoint record as JSON.

A stored row keeps a record in two parts: the *envelope*, which is the record without its state, and the *body*, which
is the state as stored.  `strata_core.codec._state` does the body.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from strata_core._validation import check_metadata, check_moment, check_text, check_thread_id, shown
from strata_core.codec._encoded import EncodedState
from strata_core.codec._json import MAX_NESTING, check_json, dump_json, load_json, quote
from strata_core.codec._times import format_time
from strata_core.codec._versions import PLAIN
from strata_core.errors import InvalidInputError
from strata_core.records import Checkpoint, CheckpointStatus, GraphIdentity, HumanDecision, Wait, WaitKind

__all__ = ["encode_envelope", "encode_record"]

_BEFORE_STATE: Final = ("schema_version", "thread_id", "status", "created_at", "suspended_node", "next_node")
_T = TypeVar("_T")


def encode_envelope(checkpoint: Checkpoint) -> tuple[bytes, int]:
    """Return the members of a record after ``schema_version`` and without ``frozen_state``, and its time of update.

    The text begins with a comma and ends with the closing brace, so that the caller puts
    ``{"schema_version":"1.7.0"`` in front once the version is known.  The time is in microseconds since 1970 UTC.

    Raises:
        InvalidInputError: A field breaks a rule; names it.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidInputError("checkpoint", f"must be a Checkpoint, not {type(checkpoint).__name__}")
    thread_id, status = checkpoint.thread_id, checkpoint.status
    opening = _opening(thread_id) if type(thread_id) is str else check_thread_id(thread_id)  # which raises
    if type(status) is not CheckpointStatus:
        _member(status, CheckpointStatus, "status")  # raises
    updated = check_moment(checkpoint.created_at, "created_at")
    try:
        created = format_time(updated)
    except OverflowError:
        created = _time(updated, "created_at")  # raises again, with the argument
    suspended, following = checkpoint.suspended_node, checkpoint.next_node
    if type(suspended) is str and type(following) is str:
        nodes = _nodes(suspended, following)
    else:
        nodes = "" if suspended is None else f',"suspended_node":{_text(suspended, "suspended_node")}'
        nodes += "" if following is None else f',"next_node":{_text(following, "next_node")}'
    parts: list[str] = []
    metadata = checkpoint.metadata
    if (metadata or type(metadata) is not dict) and check_metadata(metadata):
        pairs = [f"{_quoted(key)}:{quote(value)}" for key, value in metadata.items()]
        parts.append(f',"metadata":{{{",".join(pairs)}}}')
    if checkpoint.nested is not None:
        parts.append(f',"nested":{_nested(checkpoint.nested, checkpoint.thread_id)}')
    if checkpoint.decision is not None:
        decision = dump_json(_decision_members(checkpoint.decision), "decision", nesting=MAX_NESTING + 1)
        parts.append(f',"decision":{decision.decode()}')
    if checkpoint.wait is not None:
        parts.append(f',"wait":{dump_json(_wait_members(checkpoint.wait), "wait").decode()}')
    if checkpoint.graph is not None:
        graph = _instance(checkpoint.graph, GraphIdentity, "graph")
        identity, version = _text(graph.id, "graph.id"), _text(graph.version, "graph.version")
        parts.append(f',"graph":{{"id":{identity},"version":{version}}}')
    if checkpoint.resumed_at is not None:
        resumed = check_moment(checkpoint.resumed_at, "resumed_at")
        parts.append(f',"resumed_at":"{_time(resumed, "resumed_at")}"')
        updated = max(updated, resumed)
    rest = "".join(parts) if parts else ""
    return f'{opening}{status._value_}","created_at":"{created}"{nodes}{rest}}}'.encode(), updated


def encode_record(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a whole record as a JSON value, with the state whole and in place.

    Raises:
        InvalidInputError: A field breaks a rule; names it.
    """
    members: dict[str, Any] = load_json(b'{"schema_version":"' + PLAIN.encode() + b'"' + encode_envelope(checkpoint)[0])
    check_json(state := _state(checkpoint.frozen_state))
    before = {key: members.pop(key) for key in _BEFORE_STATE if key in members}
    return before | {"frozen_state": state} | members


def _state(state: object) -> dict[str, Any]:
    if type(state) is EncodedState:
        return state.content()
    if type(state) is not dict:
        raise InvalidInputError("frozen_state", f"must be a dict (a JSON object), not {type(state).__name__}")
    return state


def _nested(nested: object, thread_id: str) -> str:
    checkpoint = _instance(nested, Checkpoint, "nested")
    if checkpoint.thread_id != thread_id:
        raise InvalidInputError("nested.thread_id", f"must be the outer thread {thread_id!r}")
    try:
        # Its state was checked by its own limit; how deep subgraphs nest is no matter of the state.
        return dump_json(encode_record(checkpoint), "nested", nesting=sys.maxsize).decode()
    except InvalidInputError as error:
        where = error.argument if error.argument.startswith("nested") else f"nested.{error.argument}"
        raise InvalidInputError(where, error.problem) from None


def _decision_members(value: object) -> dict[str, Any]:
    decision = _instance(value, HumanDecision, "decision")
    if type(decision.is_approved) is not bool:
        raise InvalidInputError("decision.is_approved", "must be a bool")
    members: dict[str, Any] = {
        "boundary": check_text(decision.boundary, "decision.boundary"),
        "approved": decision.is_approved,
        "reviewer": check_text(decision.reviewer, "decision.reviewer"),
    }
    if not isinstance(decision.overrides, Mapping):
        raise InvalidInputError("decision.overrides", "must be a mapping")
    if decision.overrides:
        members["overrides"] = dict(decision.overrides)
    members["decided_at"] = _time(check_moment(decision.decided_at, "decision.decided_at"), "decision.decided_at")
    return members


def _wait_members(value: object) -> dict[str, Any]:
    wait = _instance(value, Wait, "wait")
    members: dict[str, Any] = {"kind": _member(wait.kind, WaitKind, "wait.kind")}
    if wait.event_type is not None:
        members["event_type"] = check_text(wait.event_type, "wait.event_type")
    if wait.due_at is not None:
        members["due_at"] = _time(check_moment(wait.due_at, "wait.due_at"), "wait.due_at")
    if wait.on_timeout is not None:
        members["on_timeout"] = check_text(wait.on_timeout, "wait.on_timeout")
    return members


def _member(value: object, kind: type[CheckpointStatus | WaitKind], argument: str) -> str:
    if type(value) is not kind:
        raise InvalidInputError(argument, f"must be a {kind.__name__}, not {shown(value)}")
    return value._value_  # what `value.value` gives, in a tenth of its time


def _instance(value: object, kind: type[_T], argument: str) -> _T:
    if not isinstance(value, kind):
        raise InvalidInputError(argument, f"must be a {kind.__name__}, not {type(value).__name__}")
    return value


def _text(value: object, argument: str) -> str:
    if type(value) is str:
        try:
            return _quoted(value)
        except InvalidInputError:
            pass  # said below, with the argument's own name
    return quote(check_text(value, argument))


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    """Return a text that comes again and again, such as a node's name, as JSON; never one that names a thread."""
    return quote(check_text(text, "text"))


@lru_cache(maxsize=1024)
def _opening(thread_id: str) -> str:
    """Return what stands before the status: the same in every save of a thread."""
    return f',"thread_id":{quote(check_thread_id(thread_id))},"status":"'


@lru_cache(maxsize=1024)
def _nodes(suspended: str, following: str) -> str:
    """Return the members that name two nodes: of a graph there are few such pairs."""
    return f',"suspended_node":{_text(suspended, "suspended_node")},"next_node":{_text(following, "next_node")}'


def _time(micros: int, argument: str) -> str:
    try:
        return format_time(micros)
    except OverflowError:
        raise InvalidInputError(argument, "is outside the years 1 to 9999 in UTC") from None
