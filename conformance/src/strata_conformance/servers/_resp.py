"""The protocol of Redis and Valkey: commands out, values of versions 2 and 3 in."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["ReplyError", "encode", "parse"]

_LINES: Final = b"+-:,#(_"
_BULKS: Final = b"$!="
_LISTS: Final = {b"*": 1, b"~": 1, b">": 1, b"%": 2}


class ReplyError(Exception):
    """The server answered with an error."""


def encode(*arguments: str | int | bytes) -> bytes:
    """Return a command as it goes over the wire."""
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in arguments]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def parse(data: bytes | bytearray, at: int = 0) -> tuple[Any, int] | None:
    """Read one value.

    Args:
        data: What came over the wire so far.
        at: Where the value begins.

    Returns:
        The value and where the next one begins; None when it has not come whole.  Text is bytes, a list or set a list,
        a map a flat list, an error an exception that is not raised.
    """
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, line, at = bytes(data[at : at + 1]), bytes(data[at + 1 : end]), end + 2
    if kind == b"|":  # facts about the value that follows
        facts = _items(data, at, 2 * int(line))
        return None if facts is None else parse(data, facts[1])
    if kind in _LISTS:
        return (None, at) if line == b"-1" else _items(data, at, _LISTS[kind] * int(line))
    if kind in _BULKS:
        size = int(line)
        if size < 0:
            return None, at
        if len(data) < at + size + 2:
            return None
        content = bytes(data[at : at + size])
        return (ReplyError(content.decode()) if kind == b"!" else content), at + size + 2
    if kind not in _LINES:
        message = f"not the protocol of Redis: {kind!r}"
        raise ValueError(message)
    return _line(kind, line), at


def _items(data: bytes | bytearray, at: int, count: int) -> tuple[list[Any], int] | None:
    items = []
    for _ in range(count):
        found = parse(data, at)
        if found is None:
            return None
        items.append(found[0])
        at = found[1]
    return items, at


def _line(kind: bytes, line: bytes) -> Any:
    match kind:
        case b"-":
            return ReplyError(line.decode())
        case b":" | b"(":
            return int(line)
        case b",":
            return float(line)
        case b"#":
            return line == b"t"
        case b"_":
            return None
        case _:
            return line
