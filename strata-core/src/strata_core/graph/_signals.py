"""The answers that resume a thread."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from strata_core._validation import check_text, check_thread_id, shown
from strata_core.errors import InvalidInputError

__all__ = ["DUE", "Answer", "DueSignal", "EventSignal", "HumanSignal", "LevelSignals"]


def _reviewer(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    _check_reviewer(value, attribute.name)


def _check_reviewer(value: object, argument: str) -> None:
    if check_text(value, argument) == "":
        raise InvalidInputError(argument, "must not be empty: say who answers")


def _frozen(value: object) -> object:
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


def _bool(_: object, attribute: attrs.Attribute[bool], value: object) -> None:
    if type(value) is not bool:
        raise InvalidInputError(attribute.name, f"must be a bool, not {type(value).__name__}")


def _event_type(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    check_thread_id(value, attribute.name)


def _overrides(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    for key, item in _str_keys(value, attribute.name).items():
        if attribute.name == "field_overrides" and type(item) is not str:
            raise InvalidInputError(
                f"field_overrides[{key!r}]", f"must be a str, not {type(item).__name__}; use with_override for others"
            )


def _str_keys(value: object, argument: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(argument, f"must be a mapping, not {type(value).__name__}")
    for key in value:
        if type(key) is not str:
            raise InvalidInputError(argument, f"keys must be str, not {type(key).__name__}")
    return value


@attrs.frozen
class HumanSignal:
    """A person's answer to a boundary, or the correction with which a failed or cancelled thread is resumed.

    `HumanSignal.approve("jdoe@acme.io").with_override("amount", 4150.25)`

    Whether an override fits is checked by the resume, against the graph's state type: one that does not is refused, and
    the thread still waits.

    Attributes:
        is_approved: Approve or reject.
        reviewer_token: Who answers: a user ID or an email address.  It is saved and shown to every node, so it must
            never be a credential.
        overrides: Top-level fields of the saved state to replace, by their JSON name, each with a JSON value of the
            field's own type.
        field_overrides: The same, but every value is a JSON string.  A key may stand in one of the two only.
    """

    is_approved: bool = attrs.field(validator=_bool)
    reviewer_token: str = attrs.field(validator=_reviewer)
    overrides: Mapping[str, Any] = attrs.field(factory=dict, converter=_frozen, validator=_overrides)
    field_overrides: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen, validator=_overrides)

    @classmethod
    def approve(cls, reviewer: str) -> HumanSignal:
        """Approve.

        Raises:
            InvalidInputError: `reviewer` is empty, no str, or has a NUL or a lone surrogate.
        """
        _check_reviewer(reviewer, "reviewer")
        return cls(True, reviewer)

    @classmethod
    def reject(cls, reviewer: str) -> HumanSignal:
        """Reject.

        Raises:
            InvalidInputError: `reviewer` is empty, no str, or has a NUL or a lone surrogate.
        """
        _check_reviewer(reviewer, "reviewer")
        return cls(False, reviewer)

    def with_override(self, key: str, value: Any) -> HumanSignal:
        """Return a signal that also replaces the field `key` with the JSON value `value`."""
        return attrs.evolve(self, overrides={**self.overrides, key: value})

    def with_field_override(self, key: str, text: str) -> HumanSignal:
        """Return a signal that also replaces the field `key` with the JSON string `text`."""
        return attrs.evolve(self, field_overrides={**self.field_overrides, key: text})


@attrs.frozen
class EventSignal:
    """An event that a thread waits for, such as a payment that has arrived.

    `EventSignal("payment.settled").with_override("paid_at", "2026-10-30T14:49:52Z")`

    Only a thread that waits for an event of this very type goes on with it; nothing is decided by it.  A signal that
    comes before the thread has reached its wait is refused, and not kept for later.

    No row says that it came: what it brought is in the state that the next node commits, and the row of the wait, which
    `CheckpointPolicy.BOUNDARIES` copies, says for which type the thread waited.  Whoever must prove who sent it, or
    when, lets it bring that too.

    Attributes:
        event_type: Which event, under the rules of a thread ID: 1 to 512 UTF-8 bytes, no NUL.
        overrides: What it brings: top-level fields of the saved state to replace, by their JSON name, each with a JSON
            value of the field's own type.
    """

    event_type: str = attrs.field(validator=_event_type)
    overrides: Mapping[str, Any] = attrs.field(factory=dict, converter=_frozen, validator=_overrides)

    def with_override(self, key: str, value: Any) -> EventSignal:
        """Return a signal that also replaces the field `key` with the JSON value `value`."""
        return attrs.evolve(self, overrides={**self.overrides, key: value})


class DueSignal:
    """Says that a timer's or a timeout's time has come; whether that is so, the engine judges by its own clock.

    `DUE` is the only one.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "<due>"


DUE: Final = DueSignal()

Answer: TypeAlias = HumanSignal | EventSignal | DueSignal | None
"""What a stopped thread goes on with; None for a failed or cancelled thread, as it is."""


def _innermost(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not isinstance(value, HumanSignal | EventSignal | DueSignal):
        raise InvalidInputError(
            attribute.name, f"must be a HumanSignal, an EventSignal or None, not {type(value).__name__}"
        )


def _levels(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    return MappingProxyType({path: _frozen(overrides) for path, overrides in value.items()})


def _outer(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidInputError(attribute.name, f"must be a mapping, not {type(value).__name__}")
    for path, overrides in value.items():
        _check_path(path, attribute.name)
        _str_keys(overrides, f"{attribute.name}[{path!r}]")


def _check_path(path: object, argument: str) -> None:
    if type(path) is not tuple or not all(type(name) is str for name in path):
        raise InvalidInputError(argument, f"a path is a tuple of names of subgraph nodes, not {shown(path)}")


@attrs.frozen
class LevelSignals:
    """A signal for a thread that stopped inside subgraphs, with corrections for the levels around its wait.

    It is also how `resume` answers what no person answers: `LevelSignals.event` an event wait, as `signal` does, and
    `LevelSignals.due` a timer or a timeout whose time has come, as `wake_due` does.

    Attributes:
        signal: The answer to the wait itself, with overrides for the innermost state; None for a failed or cancelled
            thread.
        outer: Overrides for the states around it: by path, the names of the subgraph nodes that lead to a level, from
            the outermost state, ``()``, inwards.  A path that is no level around the wait is refused, and a graph
            without subgraphs has none.
    """

    signal: Answer = attrs.field(validator=_innermost)
    outer: Mapping[tuple[str, ...], Mapping[str, Any]] = attrs.field(factory=dict, converter=_levels, validator=_outer)

    @classmethod
    def event(cls, signal: EventSignal) -> LevelSignals:
        """Answer an event wait.

        Raises:
            InvalidInputError: `signal` is no `EventSignal`.
        """
        if not isinstance(signal, EventSignal):
            raise InvalidInputError("signal", f"must be an EventSignal, not {type(signal).__name__}")
        return cls(signal)

    @classmethod
    def due(cls) -> LevelSignals:
        """Wake a timer that is due, or time out a wait that is."""
        return cls(DUE)

    def with_outer(self, path: tuple[str, ...], key: str, value: Any) -> LevelSignals:
        """Return signals that also replace the field `key` of the state at `path` with the JSON value `value`."""
        _check_path(path, "path")
        level = {**self.outer.get(path, {}), key: value}
        return attrs.evolve(self, outer={**self.outer, path: level})
