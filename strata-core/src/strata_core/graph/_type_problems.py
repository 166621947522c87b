"""What a state type holds that cannot be saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from strata_core.graph._own_hooks import can_be_hashed, is_known
from strata_core.graph._shapes import Kind, UnsupportedTypeError
from strata_core.graph._types import read_shape

__all__ = ["find_type_problems"]

_MOST: Final = 20
"""More types than this of one class come of a generic one that holds itself with ever other arguments."""


def find_type_problems(tp: Any, converter: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the path of every type without a JSON form inside a type, and what is wrong with it.

    Args:
        tp: The type.
        converter: The user's converter; None for none.  What a strict one has hooks for is left to them, and of any
            other nothing is known.
    """
    if converter is not None and not _is_strict(converter):
        return
    seen: set[Any] = set()
    variants: Counter[Any] = Counter()
    stack = [("state", tp)]
    while stack:
        where, item = stack.pop()
        if converter is not None and is_known(item, converter):
            continue
        try:
            shape = read_shape(item)
        except UnsupportedTypeError as error:
            ways_out = (
                "declare another type, or give StateGraph a converter that knows it: strict_converter() with hooks"
            )
            yield where, f"{error}; {ways_out}"
            continue
        if shape.kind in (Kind.CLASS, Kind.TYPED_DICT):
            key = item if can_be_hashed(item) else shape.type
            variants[shape.type] += key not in seen
            if key in seen or variants[shape.type] > _MOST:
                continue
            seen.add(key)
            stack += [(f"{where}.{field.key}", field.type) for field in reversed(shape.fields)]
        elif shape.kind is Kind.ARRAY:
            stack.append((f"{where}[]", shape.args[0]))
        elif shape.kind is Kind.OBJECT:
            stack.append((f"{where}[]", shape.args[1]))
        elif shape.kind is Kind.FIXED_TUPLE:
            stack += [(f"{where}[{index}]", arg) for index, arg in reversed(list(enumerate(shape.args)))]
        elif shape.kind is Kind.UNION:
            stack += [(where, arg) for arg in reversed(shape.args)]


def _is_strict(converter: Any) -> bool:
    from strata_core.graph._strict import StrictConverter  # with cattrs, which nobody needs who gives no converter

    return isinstance(converter, StrictConverter)
