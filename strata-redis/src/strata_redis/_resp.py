"""The protocol of Redis and Valkey, version 2: commands out, answers in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from strata_redis._calls import Answer, ServerError

__all__ = ["Reader", "pack"]

_ARRAY, _BULK, _ERROR, _INTEGER, _STATUS = b"*$-:+"


def pack(commands: Iterable[Sequence[bytes]]) -> bytes:
    """Return commands as they go over the wire."""
    parts = []
    for words in commands:
        parts.append(b"*%d\r\n" % len(words))
        parts.extend([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])
    return b"".join(parts)


class Reader:
    """Puts answers together from what comes, piece by piece; looks at nothing twice."""

    def __init__(self) -> None:
        self._rest: bytes | bytearray = b""  # of what came, from the beginning of the next value on
        self._needed = 0  # bytes, until that value is whole
        self._arrays: list[tuple[list[Answer], int]] = []  # begun, the outermost first, and how long they will be

    @property
    def is_within(self) -> bool:
        """Whether a part of an answer has come, and the rest has not."""
        return bool(self._rest or self._arrays)

    def feed(self, data: bytes) -> list[Answer]:
        """Take what came, and return the answers that are whole by now; errors are among them as values.

        Raises:
            ValueError: It is not this protocol.
        """
        content: bytes | bytearray = data
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            content = self._rest
        answers: list[Answer] = []
        at, arrays = 0, self._arrays
        while True:
            end = content.find(b"\r\n", at)
            if end < 0:
                self._needed = len(content) - at + 1
                break
            kind, line, after = content[at], content[at + 1 : end], end + 2
            answer: Answer
            if kind == _BULK:
                size = int(line)
                if size < 0:
                    answer = None
                elif len(content) < after + size + 2:
                    self._needed = after + size + 2 - at
                    break
                else:
                    answer = bytes(content[after : after + size])
                    after += size + 2
            elif kind == _ARRAY:
                size = int(line)
                if size > 0:
                    arrays.append(([], size))
                    at = after
                    continue
                answer = [] if size == 0 else None
            elif kind == _INTEGER:
                answer = int(line)
            elif kind == _STATUS:
                answer = bytes(line)
            elif kind == _ERROR:
                answer = ServerError(line.decode(errors="replace"))
            else:
                raise ValueError(f"an answer begins with {bytes((kind,))!r}")
            at = after
            while arrays:
                values, size = arrays[-1]
                values.append(answer)
                if len(values) < size:
                    break
                answer = values
                arrays.pop()
            else:
                answers.append(answer)
        self._rest = bytearray(content[at:])
        return answers
