"""JSON text, strictly: what is written reads back equal, or is refused with its path.

The standard library's encoder is exact but lenient: it turns keys into strings, tuples into lists and subclasses into
their base.  So a value is walked first, quickly and without paths; only a value at fault is walked again to name it.
"""

from __future__ import annotations

import json
import json.encoder
import math
import sys
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

from strata_core._validation import shown
from strata_core.errors import InvalidInputError

__all__ = ["MAX_NESTING", "check_json", "copy_json", "dump_json", "load_json", "quote", "quoted"]

MAX_NESTING: Final = 200
MAX_DIGITS: Final = 4300
MAX_CONTAINERS: Final = 10_000_000
"""More lists and dicts than this cannot be meant: it takes a loop, or lists that hold the same lists several times."""
_WIDE: Final = 10_000
_HIGHEST: Final = 10**MAX_DIGITS - 1
_LOWEST: Final = -_HIGHEST
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


class _Quoted(dict[str, str]):
    """Texts with their JSON form, as they were written lately.

    Looking at every character is what takes longest in JSON, and most texts of a state are those of the save before.
    """

    most = 4 << 20
    """Bytes, roughly, after which it starts anew; twice that for texts that are not Latin."""
    longest = 1 << 20
    """Characters; a longer text is not kept."""
    each = 200
    """Bytes, roughly, that a short text takes."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def __missing__(self, text: str) -> str:
        quoted = encode_basestring(text)
        if len(text) <= self.longest:
            cost = self.each + 2 * len(text)
            if self._size + cost > self.most:
                self.clear()
                self._size = 0
            self._size += cost
            self[text] = quoted
        return quoted


quoted: Final = _Quoted().__getitem__
"""A str as JSON text, remembered for a while: for texts of states."""


def _make_encoder() -> Callable[[Any], str]:
    """Return the standard library's encoder in its compact form; `json.JSONEncoder` makes a C encoder at each call."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without it
        return json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode
    encode = make(None, None, quoted, None, ":", ",", False, False, False)
    return lambda value: "".join(encode(value, 0))


_encode: Final = _make_encoder()

quote: Final = encode_basestring
"""A str as JSON text."""


def dump_json(value: Any, path: str = "state", *, nesting: int = MAX_NESTING) -> bytes:
    """Return compact UTF-8 JSON text of a value.

    Args:
        value: Made of dict, list, str, int, float, bool and None, exactly; no subclasses.
        path: What the value is called in errors.
        nesting: How many levels of containers it may have; one less for a value of a state than for the state.

    Raises:
        InvalidInputError: The value, or something in it, has no exact JSON form; names the path.
    """
    kind = type(value)
    if kind is str:
        try:
            return encode_basestring(value).encode()
        except UnicodeEncodeError:
            raise _fault(value, path, nesting) from None
    if value is None or kind is bool:
        return b"null" if value is None else b"true" if value else b"false"
    if kind not in _SCALARS and not _is_plain(value, nesting):
        if (kind is dict or kind is list) and _size(value, nesting) > MAX_CONTAINERS:
            raise InvalidInputError(path, f"comes to more than {MAX_CONTAINERS:,} lists and dicts")
        raise _fault(value, path, nesting)
    if sys.get_int_max_str_digits() != MAX_DIGITS and _has_huge_int(value):
        raise _fault(value, path, nesting)
    try:
        return _encode(value).encode()
    except (ValueError, RecursionError):
        raise _fault(value, path, nesting) from None


def check_json(value: Any, path: str = "state") -> None:
    """Raise what `dump_json` would raise, and nothing else."""
    dump_json(value, path)


def _is_plain(value: Any, nesting: int) -> bool:
    """Tell whether a container holds only plain values and string keys, at most so deep; level by level, for speed."""
    scalars, wide = _SCALARS, _WIDE
    level = [value]
    for _ in range(nesting):
        below: list[Any] = []
        for container in level:
            kind = type(container)
            if kind is dict:
                for key, item in container.items():
                    if type(key) is not str:
                        return False
                    if type(item) not in scalars:
                        below.append(item)
            elif kind is list:
                below.extend([item for item in container if type(item) not in scalars])
            else:
                return False
        if not below:
            return True
        if len(below) > wide:
            if _size(value, nesting) > MAX_CONTAINERS:
                return False
            wide = 100 * len(below)
        level = below
    return False


def _size(value: Any, nesting: int) -> int:
    """Return how many containers the text of a value has, counting one that is referred to twice as two.

    Looks at each container once a level, so that neither a loop nor a value that doubles at every level takes long.
    """
    total, level = 1, {id(value): (value, 1)}
    for _ in range(nesting):
        below: dict[int, tuple[Any, int]] = {}
        for container, times in level.values():
            for item in container.values() if type(container) is dict else container:
                if type(item) is dict or type(item) is list:
                    below[id(item)] = (item, below.get(id(item), (item, 0))[1] + times)
        total += sum(times for _, times in below.values())
        if not below or total > MAX_CONTAINERS:
            break
        level = below
    return total


def _has_huge_int(value: Any) -> bool:
    """Look for what the interpreter's own limit on digits, 4,300 unless somebody changed it, would let pass."""
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is int and not _LOWEST <= item <= _HIGHEST:
            return True
        if type(item) is dict:
            stack.extend(item.values())
        elif type(item) is list:
            stack.extend(item)
    return False


def _fault(value: Any, path: str, nesting: int) -> InvalidInputError:
    """Return the error for the first value at fault, in depth-first order."""
    stack: list[tuple[Any, str, int]] = [(value, path, MAX_NESTING - nesting + 1)]
    while stack:
        item, where, depth = stack.pop()
        problem = _problem(item, depth)
        if problem is not None:
            return InvalidInputError(where, problem)
        children: list[tuple[Any, str, int]] = []
        if type(item) is dict:
            for key, child in item.items():
                if type(key) is not str:
                    return InvalidInputError(where, f"key {shown(key)} is a {type(key).__name__}, not a str")
                if not _is_text(key):
                    return InvalidInputError(where, f"key {key!r} contains a lone surrogate")
                children.append((child, f"{where}.{key}", depth + 1))
        elif type(item) is list:
            children = [(child, f"{where}[{index}]", depth + 1) for index, child in enumerate(item)]
        stack.extend(reversed(children))
    return InvalidInputError(path, "has no exact JSON form")


def _problem(item: Any, depth: int) -> str | None:
    kind = type(item)
    if kind is float:
        return None if math.isfinite(item) else f"{item} is not a JSON number"
    if kind is str:
        return None if _is_text(item) else "contains a lone surrogate"
    if kind is int:
        return None if _LOWEST <= item <= _HIGHEST else f"has more than {MAX_DIGITS} digits; store it as text"
    if kind is dict or kind is list:
        return None if depth <= MAX_NESTING else f"is nested more than {MAX_NESTING} deep"
    if kind is bool or item is None:
        return None
    return (
        f"{kind.__module__}.{kind.__qualname__} has no JSON form here; "
        "convert it to dict, list, str, int, float, bool or None, or give its field a type the state converter knows"
    )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond the range of a float")
    return number


_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode


def load_json(text: bytes) -> Any:
    """Return the value of UTF-8 JSON text.

    Raises:
        ValueError: It is no JSON text, or holds NaN, an infinity (also as ``1e999``), an int of more than 4,300 digits
            or a lone surrogate.
    """
    try:
        value = _decode(text.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if b"\\ud" in text or b"\\uD" in text:
        _refuse_surrogates(value)
    return value


def _refuse_surrogates(value: Any) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            stack.extend(item)
            stack.extend(item.values())
        elif type(item) is list:
            stack.extend(item)
        elif type(item) is str and not _is_text(item):
            raise ValueError("contains a lone surrogate")


def copy_json(value: Any) -> Any:
    """Return a copy of a JSON value that shares no container with it."""
    if type(value) is dict:
        return {key: item if type(item) in _SCALARS else copy_json(item) for key, item in value.items()}
    if type(value) is list:
        return [item if type(item) in _SCALARS else copy_json(item) for item in value]
    return value
