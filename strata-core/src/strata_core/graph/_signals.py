"""The answers that resume a thread."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from strata_core._validation import check_text
from strata_core.errors import InvalidInputError

__all__ = ["HumanSignal"]


def _reviewer(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    if check_text(value, attribute.name) == "":
        raise InvalidInputError(attribute.name, "must not be empty: say who answers")


def _frozen(value: object) -> object:
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


def _bool(_: object, attribute: attrs.Attribute[bool], value: object) -> None:
    if type(value) is not bool:
        raise InvalidInputError(attribute.name, f"must be a bool, not {type(value).__name__}")


def _overrides(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidInputError(attribute.name, f"must be a mapping, not {type(value).__name__}")
    for key, item in value.items():
        if type(key) is not str:
            raise InvalidInputError(attribute.name, f"keys must be str, not {type(key).__name__}")
        if attribute.name == "field_overrides" and type(item) is not str:
            raise InvalidInputError(
                f"field_overrides[{key!r}]", f"must be a str, not {type(item).__name__}; use with_override for others"
            )


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
        return cls(True, reviewer)

    @classmethod
    def reject(cls, reviewer: str) -> HumanSignal:
        """Reject.

        Raises:
            InvalidInputError: `reviewer` is empty, no str, or has a NUL or a lone surrogate.
        """
        return cls(False, reviewer)

    def with_override(self, key: str, value: Any) -> HumanSignal:
        """Return a signal that also replaces the field `key` with the JSON value `value`."""
        return attrs.evolve(self, overrides={**self.overrides, key: value})

    def with_field_override(self, key: str, text: str) -> HumanSignal:
        """Return a signal that also replaces the field `key` with the JSON string `text`."""
        return attrs.evolve(self, field_overrides={**self.field_overrides, key: text})
