"""The protocol of Redis and Valkey, version 2: commands out, answers in; written and parsed by hiredis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import hiredis

from strata_redis._calls import Answer, ServerError

__all__ = ["Reader", "pack"]

_NOT_YET: Final = object()
_KINDS: Final = frozenset({bytes, int, list, type(None), ServerError})
"""Version 3 has more, and speaks out of turn."""


def pack(commands: Iterable[Sequence[bytes]]) -> bytes:
    """Return commands as they go over the wire."""
    write = hiredis.pack_command
    return b"".join([write(tuple(words)) for words in commands])  # type: ignore[arg-type]  # it says: of one word


class Reader:
    """Puts answers together from what comes, piece by piece.

    Attributes:
        is_within: Whether a part of an answer has come, and the rest has not.
        broken: Why what came is not this protocol, and nothing more is read; None while it is.
    """

    def __init__(self) -> None:
        self._parser = hiredis.Reader(protocolError=ValueError, replyError=ServerError, notEnoughData=_NOT_YET)
        self.is_within = False
        self.broken: ValueError | None = None

    def feed(self, data: bytes) -> list[Answer]:
        """Take what came, and return the answers that are whole by now; errors are among them as values."""
        self._parser.feed(data)
        answers: list[Answer] = []
        try:
            while self._parser.has_data():
                answer: Any = self._parser.gets()
                self.is_within = answer is _NOT_YET
                if self.is_within:
                    break
                if type(answer) not in _KINDS:
                    raise ValueError(f"an answer is a {type(answer).__name__}")
                answers.append(answer)
        except ValueError as error:
            self.broken = error
        return answers
