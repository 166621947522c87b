"""A checkpoint record as JSON and back.

A stored row keeps a record in two parts: the *envelope*, which is the record without its state, and the *body*, which
is the state as stored.  `strata_core.codec._state` does the body.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

from strata_core._validation import check_metadata, check_moment, check_text, check_thread_id, shown
from strata_core.codec._json import MAX_NESTING, check_json, dump_json, load_json, quote
from strata_core.codec._times import format_time, parse_time
from strata_core.errors import InvalidInputError, SchemaVersionError
from strata_core.records import Checkpoint, CheckpointStatus, GraphIdentity, HumanDecision, Wait, WaitKind

__all__ = [
    "PLAIN",
    "SCHEMA_VERSION",
    "MalformedRecordError",
    "check_version",
    "decode_envelope",
    "decode_record",
    "encode_envelope",
    "encode_record",
]

PLAIN: Final = "1.7.0"
SCHEMA_VERSION: Final = "1.9.0"
"""The newest record format that this release reads and writes."""
_VERSION: Final = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)
_NEWEST: Final = (1, 9, 0)
_ENCODED: Final = (1, 8, 0)
_BEFORE_STATE: Final = ("schema_version", "thread_id", "status", "created_at", "suspended_node", "next_node")
_T = TypeVar("_T")


class MalformedRecordError(ValueError):
    """A record does not have its form; whoever knows the row turns this into `CorruptCheckpointError`."""


# --------------------------------------------------------------------------------------------------------- encoding


def encode_envelope(checkpoint: Checkpoint) -> bytes:
    """Return the members of a record after ``schema_version`` and without ``frozen_state``, as JSON text.

    The text begins with a comma and ends with the closing brace, so that the caller puts
    ``{"schema_version":"1.7.0"`` in front once the version is known.

    Raises:
        InvalidInputError: A field breaks a rule; names it.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidInputError("checkpoint", f"must be a Checkpoint, not {type(checkpoint).__name__}")
    parts = [
        ',"thread_id":', quote(check_thread_id(checkpoint.thread_id)),
        ',"status":"', _member(checkpoint.status, CheckpointStatus, "status"),
        '","created_at":"', _time(checkpoint.created_at, "created_at"), '"',
    ]  # fmt: skip
    if checkpoint.suspended_node is not None:
        parts += ',"suspended_node":', _text(checkpoint.suspended_node, "suspended_node")
    if checkpoint.next_node is not None:
        parts += ',"next_node":', _text(checkpoint.next_node, "next_node")
    if check_metadata(checkpoint.metadata):
        pairs = [f"{_quoted(key)}:{quote(value)}" for key, value in checkpoint.metadata.items()]
        parts += ',"metadata":{', ",".join(pairs), "}"
    if checkpoint.nested is not None:
        parts += ',"nested":', _nested(checkpoint.nested, checkpoint.thread_id)
    if checkpoint.decision is not None:
        parts += (
            ',"decision":',
            dump_json(_decision_members(checkpoint.decision), "decision", nesting=MAX_NESTING + 1).decode(),
        )
    if checkpoint.wait is not None:
        parts += ',"wait":', dump_json(_wait_members(checkpoint.wait), "wait").decode()
    if checkpoint.graph is not None:
        graph = _instance(checkpoint.graph, GraphIdentity, "graph")
        parts += (
            ',"graph":{"id":',
            _text(graph.id, "graph.id"),
            ',"version":',
            _text(graph.version, "graph.version"),
            "}",
        )
    if checkpoint.resumed_at is not None:
        parts += ',"resumed_at":"', _time(checkpoint.resumed_at, "resumed_at"), '"'
    parts.append("}")
    return "".join(parts).encode()


def encode_record(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a whole record as a JSON value, with the state whole and in place.

    Raises:
        InvalidInputError: A field breaks a rule; names it.
    """
    members: dict[str, Any] = load_json(b'{"schema_version":"' + PLAIN.encode() + b'"' + encode_envelope(checkpoint))
    check_json(_state(checkpoint.frozen_state))
    before = {key: members.pop(key) for key in _BEFORE_STATE if key in members}
    return before | {"frozen_state": checkpoint.frozen_state} | members


def _state(state: object) -> dict[str, Any]:
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
    members["decided_at"] = _time(decision.decided_at, "decision.decided_at")
    return members


def _wait_members(value: object) -> dict[str, Any]:
    wait = _instance(value, Wait, "wait")
    members: dict[str, Any] = {"kind": _member(wait.kind, WaitKind, "wait.kind")}
    if wait.event_type is not None:
        members["event_type"] = check_text(wait.event_type, "wait.event_type")
    if wait.due_at is not None:
        members["due_at"] = _time(wait.due_at, "wait.due_at")
    if wait.on_timeout is not None:
        members["on_timeout"] = check_text(wait.on_timeout, "wait.on_timeout")
    return members


def _member(value: object, kind: type[CheckpointStatus | WaitKind], argument: str) -> str:
    if type(value) is not kind:
        raise InvalidInputError(argument, f"must be a {kind.__name__}, not {shown(value)}")
    return value.value


def _instance(value: object, kind: type[_T], argument: str) -> _T:
    if not isinstance(value, kind):
        raise InvalidInputError(argument, f"must be a {kind.__name__}, not {type(value).__name__}")
    return value


def _text(value: object, argument: str) -> str:
    return _quoted(check_text(value, argument))


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    """Return a text that comes again and again, such as a node's name, as JSON; never one that names a thread."""
    return quote(text)


def _time(value: datetime, argument: str) -> str:
    check_moment(value, argument)
    try:
        return format_time(value)
    except OverflowError:
        raise InvalidInputError(argument, "is outside the years 1 to 9999 in UTC") from None


# --------------------------------------------------------------------------------------------------------- decoding


def check_version(version: object) -> tuple[int, ...]:
    """Let pass every 1.x up to our own, and return its three numbers.

    Raises:
        SchemaVersionError: It is newer.
        MalformedRecordError: It is no version.
    """
    match = _VERSION.fullmatch(version) if type(version) is str else None
    if match is None:
        raise MalformedRecordError(f"has schema_version {version!r}, which is no version")
    numbers = tuple(map(int, match.groups()))
    if numbers < (1, 0, 0):
        raise MalformedRecordError(f"has schema_version {version!r}, which never existed")
    if numbers <= _NEWEST:
        return numbers
    raise SchemaVersionError(
        f"schema_version {version} is newer than {SCHEMA_VERSION}; upgrade strata-core to read it",
        found=str(version),
        supported=SCHEMA_VERSION,
    )


def decode_record(record: object) -> Checkpoint:
    """Return the checkpoint of a whole record with its state in place.

    Raises:
        SchemaVersionError: The record is of a newer format.
        MalformedRecordError: It does not have its form; the message names the member.
    """
    members = _object(record, "record")
    if check_version(members.get("schema_version")) >= _ENCODED:
        raise MalformedRecordError("stands by itself and yet has the schema_version of an encoded row")
    if "frozen_state" not in members:
        raise MalformedRecordError("lacks frozen_state")
    state = _object(members["frozen_state"], "frozen_state")
    return _checkpoint({key: value for key, value in members.items() if key != "frozen_state"}, state)


def decode_envelope(envelope: bytes, state: dict[str, Any], *, version: str | None = None) -> Checkpoint:
    """Return the checkpoint of an envelope and its decoded state.

    Args:
        envelope: The record without its state, as JSON text.
        state: The whole state.
        version: What its schema_version must be; None takes any that can be read.

    Raises:
        SchemaVersionError: The record is of a newer format.
        MalformedRecordError: It does not have its form; the message names the member.
    """
    try:
        members = _object(load_json(envelope), "record")
    except MalformedRecordError:
        raise
    except ValueError as error:
        raise MalformedRecordError(f"is not JSON: {error}") from None
    found = members.get("schema_version")
    check_version(found)
    if version is not None and found != version:
        raise MalformedRecordError(f"is stored with schema_version {version} but says {found}")
    return _checkpoint(members, state)


def _checkpoint(members: dict[str, Any], state: dict[str, Any]) -> Checkpoint:
    reader = _Members(members, "")
    thread_id = reader.text("thread_id")
    checkpoint = Checkpoint(
        thread_id=thread_id,
        status=reader.enum("status", CheckpointStatus),
        frozen_state=state,
        created_at=reader.time("created_at"),
        suspended_node=reader.optional("suspended_node", reader.text),
        next_node=reader.optional("next_node", reader.text),
        metadata=reader.optional("metadata", reader.pairs) or {},
        nested=reader.optional("nested", lambda key: _decode_nested(members[key], thread_id)),
        decision=reader.optional("decision", lambda key: _decode_decision(members[key])),
        wait=reader.optional("wait", lambda key: _decode_wait(members[key])),
        graph=reader.optional("graph", lambda key: _decode_graph(members[key])),
        resumed_at=reader.optional("resumed_at", reader.time),
    )
    reader.finish("schema_version")
    return checkpoint


def _decode_nested(value: object, thread_id: str) -> Checkpoint:
    try:
        nested = decode_record(value)
    except MalformedRecordError as error:
        raise MalformedRecordError(f"has a nested record that {error}") from None
    if nested.thread_id != thread_id:
        raise MalformedRecordError("has a nested record of another thread")
    return nested


def _decode_decision(value: object) -> HumanDecision:
    reader = _Members(_object(value, "decision"), "decision.")
    decision = HumanDecision(
        boundary=reader.text("boundary"),
        is_approved=reader.typed("approved", bool),
        reviewer=reader.text("reviewer"),
        decided_at=reader.time("decided_at"),
        overrides=reader.optional("overrides", lambda key: reader.typed(key, dict)) or {},
    )
    reader.finish()
    return decision


def _decode_wait(value: object) -> Wait:
    reader = _Members(_object(value, "wait"), "wait.")
    wait = Wait(
        kind=reader.enum("kind", WaitKind),
        event_type=reader.optional("event_type", reader.text),
        due_at=reader.optional("due_at", reader.time),
        on_timeout=reader.optional("on_timeout", reader.text),
    )
    reader.finish()
    return wait


def _decode_graph(value: object) -> GraphIdentity:
    reader = _Members(_object(value, "graph"), "graph.")
    graph = GraphIdentity(id=reader.text("id"), version=reader.text("version"))
    reader.finish()
    return graph


def _object(value: object, name: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise MalformedRecordError(f"has a {name} that is no JSON object")
    return value


class _Members:
    """Takes the members of a JSON object one by one, without any conversion, and refuses what is left over."""

    __slots__ = ("_members", "_prefix", "_taken")

    def __init__(self, members: dict[str, Any], prefix: str) -> None:
        self._members = members
        self._prefix = prefix
        self._taken: set[str] = set()

    def typed(self, key: str, kind: type[_T]) -> _T:
        self._taken.add(key)
        value = self._members.get(key)
        if type(value) is not kind:
            problem = "lacks" if key not in self._members else f"has something other than a {kind.__name__} as"
            raise MalformedRecordError(f"{problem} {self._prefix}{key}")
        return value

    def text(self, key: str) -> str:
        return self.typed(key, str)

    def enum(self, key: str, kind: Callable[[str], _T]) -> _T:
        try:
            return kind(self.text(key))
        except MalformedRecordError:
            raise
        except ValueError:
            raise MalformedRecordError(f"has an unknown {self._prefix}{key}") from None

    def time(self, key: str) -> datetime:
        try:
            return parse_time(self.text(key))
        except MalformedRecordError:
            raise
        except ValueError as error:
            raise MalformedRecordError(f"has a {self._prefix}{key} that {error}") from None

    def pairs(self, key: str) -> dict[str, str]:
        pairs = self.typed(key, dict)
        for value in pairs.values():
            if type(value) is not str:
                raise MalformedRecordError(f"has a {self._prefix}{key} value that is no string")
        return pairs

    def optional(self, key: str, read: Callable[[str], _T]) -> _T | None:
        self._taken.add(key)
        return None if self._members.get(key) is None else read(key)

    def finish(self, *ignored: str) -> None:
        unknown = self._members.keys() - self._taken - set(ignored)
        if unknown:
            raise MalformedRecordError(f"has an unknown member {self._prefix}{min(unknown)}")
