"""What is written, apart from how."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeAlias

import attrs

__all__ = ["Line", "Role", "Span"]


class Role(StrEnum):
    """What a piece of text is; a terminal gives each a colour."""

    TEXT = "text"
    LABEL = "label"
    THREAD = "thread"
    NODE = "node"
    TIME = "time"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    # The states of a thread, which are the statuses of checkpoints and one more.
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    COMPLETED = "completed"
    ENDED = "ended"
    RESUMED = "resumed"


@attrs.frozen
class Span:
    """A piece of text and its role.  The text is ready to be shown: `strata_host.cli._text` has made it harmless."""

    text: str
    role: Role = Role.TEXT


Line: TypeAlias = Sequence[Span]
"""Spans that stand beside each other."""
