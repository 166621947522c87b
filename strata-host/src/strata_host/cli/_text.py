"""Text from a store, made harmless for a terminal.

IDs, node names and metadata are anybody's text: escape sequences, bidirectional overrides and line breaks in them must
show, not act.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

__all__ = ["argument", "counted", "json_text", "one_line", "phrase", "word"]


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def _visible(text: str) -> str:
    # Printable excludes control, format (bidi, zero width), surrogate, private and unassigned characters, and every
    # space but the common one.
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def one_line(text: str) -> str:
    """Return the text with everything that is not printable escaped, line breaks too; for messages."""
    return _visible(text)


def phrase(text: str) -> str:
    """Return the text as it is if it is plainly printable, else as a JSON string literal.

    The two cannot be taken for each other: a text that begins with a quote or holds a backslash is quoted as well.
    """
    plain = text.isprintable() and "\\" not in text and text == text.strip() and not text.startswith('"')
    return text if plain and text else _visible(json.dumps(text, ensure_ascii=False))


def word(text: str | None) -> str:
    """Return a name as one word: `phrase`, also quoted when it holds a space; ``-`` for None."""
    if text is None:
        return "-"
    shown = phrase(text)
    quoted = shown != text
    return shown if quoted or (" " not in text and text != "-") else json.dumps(text, ensure_ascii=False)


def argument(text: str) -> str:
    """Return a text as a shell takes it for one argument."""
    return shlex.quote(text) if text.isprintable() else phrase(text)


def counted(number: int, what: str) -> str:
    """Return a number with what it counts, whose plural ends in s."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON for people: other scripts as they are, everything that is not printable escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return "\n".join(_visible(line) for line in text.split("\n"))
