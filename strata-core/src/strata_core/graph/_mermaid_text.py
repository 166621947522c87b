"""Text in a Mermaid flowchart: whatever a name holds, it stays inside of its label."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Final

__all__ = ["duration_text", "label"]

_PLAIN: Final = frozenset(" _-.,")
_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def label(*lines: str) -> str:
    r"""Return a quoted label of so many lines.

    Letters and digits of any script stand as they are, and a few marks that mean nothing to Mermaid; everything else is
    written by its number, as Mermaid has it (``#34;`` is a quote), so that no text can end the label, or be read as
    markup, a directive, an icon or a formula.  What is not printable is shown as in JSON: ``\n``, ``\u202e``.
    """
    return '"' + "<br/>".join(map(_escape, lines)) + '"'


def _escape(line: str) -> str:
    # Mermaid takes a line with "direction LR" anywhere in it for that statement, also inside of quotes.
    return re.sub("(?i)(direction) ", r"\1#32;", "".join(map(_character, line)))


def _character(character: str) -> str:
    if character.isalnum() or character in _PLAIN:
        return character
    shown = character if character.isprintable() else json.dumps(character)[1:-1]
    return "".join(mark if mark.isalnum() else f"#{ord(mark)};" for mark in shown)


def duration_text(seconds: float) -> str:
    """Return a duration of a definition for people, such as ``1 hour 30 minutes``."""
    whole, rest = divmod(timedelta(seconds=seconds), timedelta(seconds=1))
    parts = []
    for unit, size in _UNITS:
        number, whole = divmod(whole, size)
        if number:
            parts.append(f"{number} {unit}{'' if number == 1 else 's'}")
    if rest:
        parts.append(f"{rest / timedelta(milliseconds=1):g} milliseconds")
    return " ".join(parts) or "0 seconds"
