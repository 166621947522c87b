"""Showing the state of a checkpoint, and of those nested in it."""

from __future__ import annotations

from strata_core.records import Checkpoint
from strata_host.cli._text import json_text, word
from strata_host.cli._views import levels
from strata_host.cli.output import Output, Role, Span

__all__ = ["show_states"]


def show_states(out: Output, checkpoint: Checkpoint) -> None:
    """Write the whole state, then the state of each subgraph that the thread stopped in."""
    path: list[str] = []
    for level in levels(checkpoint):
        title = "state" if not path else f"state of {' / '.join(path)}"
        out.line([Span(f"{title}:", Role.LABEL)])
        out.document(json_text(dict(level.frozen_state), indent=2))
        path.append(word(level.suspended_node))
