"""A checkpoint record from JSON: nothing is converted, and nothing is left over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from strata_core.codec._json import load_json
from strata_core.codec._times import parse_time
from strata_core.codec._versions import ENCODED, MalformedRecordError, check_version
from strata_core.records import Checkpoint, CheckpointStatus, GraphIdentity, HumanDecision, Wait, WaitKind

__all__ = ["decode_envelope", "decode_record"]

_T = TypeVar("_T")


def decode_record(record: object) -> Checkpoint:
    """Return the checkpoint of a whole record with its state in place.

    Raises:
        SchemaVersionError: The record is of a newer format.
        MalformedRecordError: It does not have its form; the message names the member.
    """
    members = _object(record, "record")
    if check_version(members.get("schema_version")) >= ENCODED:
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
