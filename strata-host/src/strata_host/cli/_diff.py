"""What differs between two states, field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["Diff", "diff_states"]


@attrs.frozen
class Diff:
    """The top-level fields that differ.

    Attributes:
        added: Fields that only the later state has.
        removed: Fields that only the earlier state has.
        changed: Fields of both, with the earlier and the later value.
    """

    added: Mapping[str, Any]
    removed: Mapping[str, Any]
    changed: Mapping[str, tuple[Any, Any]]

    @property
    def is_empty(self) -> bool:
        """Whether the states are the same."""
        return not (self.added or self.removed or self.changed)

    def as_json(self) -> dict[str, Any]:
        """Return the shape that `--json` writes."""
        changed = {key: {"a": before, "b": after} for key, (before, after) in self.changed.items()}
        return {"added": dict(self.added), "removed": dict(self.removed), "changed": changed}


def diff_states(before: Mapping[str, Any], after: Mapping[str, Any]) -> Diff:
    """Compare two states as JSON: the order of keys means nothing; 1, 1.0 and true are three values."""
    return Diff(
        {key: value for key, value in after.items() if key not in before},
        {key: value for key, value in before.items() if key not in after},
        {
            key: (value, after[key])
            for key, value in before.items()
            if key in after and _canonical(value) != _canonical(after[key])
        },
    )


def _canonical(value: Any) -> str:
    # Not ==, which takes True for 1 and 1 for 1.0.
    return json.dumps(value, sort_keys=True)
