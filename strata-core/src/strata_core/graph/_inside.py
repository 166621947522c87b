"""What comes out of one level of a run other than a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strata_core.graph._results import FailureCode, Interrupted

__all__ = ["LevelFailedError", "PausedError"]


class LevelFailedError(Exception):
    """A level of a run has failed for good, at its node; the level around it may try again, or let a fallback step in.

    Attributes:
        code: Why.
        text: What failed, for people.
        cause: The error behind it.
    """

    def __init__(self, code: FailureCode, text: str, cause: BaseException) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.cause = cause

    def inside(self, where: str) -> LevelFailedError:
        """Return the same failure as it is told one level further out."""
        return LevelFailedError(self.code, f"{self.text}, inside {where}", self.cause)


class PausedError(Exception):
    """A thread waits inside a subgraph, and that is saved.

    Attributes:
        interrupted: Where, and for what.
    """

    def __init__(self, interrupted: Interrupted[Any]) -> None:
        super().__init__()
        self.interrupted = interrupted
