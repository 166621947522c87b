"""Values that do not fit their type."""

from __future__ import annotations

from typing import Any

__all__ = ["MisfitError", "mismatch"]


class MisfitError(Exception):
    """A value does not fit its type.

    Attributes:
        steps: The path to it, from the outside in: ``.field`` and ``[3]``.
        problem: What is wrong.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.steps: list[str] = []
        self.problem = problem

    def under(self, step: str) -> MisfitError:
        """Note that this happened inside `step`, and return itself."""
        self.steps.insert(0, step)
        return self


def mismatch(value: Any, wanted: str) -> MisfitError:
    """Return the error of a value of another type; `wanted` says which one it should be of, with its article."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return MisfitError(f"must be {wanted}, not {name}")
