"""From states to JSON text in one step, for classes with fields.

What a class's own hook makes would be walked once more to be checked, and once more to be written.  The text of an
exact str, int, float or bool needs neither.  Whatever else a field holds goes the long way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from strata_core.codec import dump_json
from strata_core.codec._encoded import EncodedState
from strata_core.codec._json import MAX_DIGITS, MAX_NESTING, quote, quoted
from strata_core.graph._leaves import Dump, leaf_of
from strata_core.graph._misfit import mismatch
from strata_core.graph._own_hooks import can_be_hashed, dump_hook, is_own
from strata_core.graph._rebuilding import settled
from strata_core.graph._shapes import Field, Kind
from strata_core.graph._strict import StrictConverter
from strata_core.graph._types import read_shape

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["encoder_of_class", "make_encoder"]

_SCALARS: Final[dict[Dump, str]] = {
    leaf.dump: text
    for kind, text in (
        (str, "q({0}) if type({0}) is str else "),
        (int, "str({0}) if type({0}) is int else "),
        (bool, "'true' if {0} is True else 'false' if {0} is False else "),
        (float, "str({0}) if type({0}) is float and {0} - {0} == 0 else "),  # of an infinity, or NaN, that is NaN
    )
    if (leaf := leaf_of(kind)) is not None
}
"""By the hook of a field: how an expression begins that gives the text of most of its values."""
_DUMP_STR: Final = next(iter(_SCALARS))
_TEXTS: Final = "'[' + ','.join(map(q, {0})) + ']' if type({0}) is kind{1} and texts.issuperset(map(type, {0})) else "
"""The same for a field with a list or tuple of str."""


def make_encoder(tp: Any, converter: Converter, dump: Dump) -> Callable[[Any], EncodedState]:
    """Return the function that turns states into JSON text: what `dump_json` makes of what `dump` gives."""

    def the_long_way(state: Any) -> EncodedState:
        return EncodedState(dump_json(dump(state)))

    short = encoder_of_class(tp, converter) if isinstance(converter, StrictConverter) else None
    if short is None:
        return the_long_way

    def encode(state: Any) -> EncodedState:
        # In a program that lets the interpreter write more digits than a state may have, the short way would do so too.
        if sys.get_int_max_str_digits() == MAX_DIGITS:
            try:
                return EncodedState(short(state))
            except Exception:  # noqa: BLE001, S110  # the long way raises it again, with its path
                pass
        return the_long_way(state)

    return encode


def encoder_of_class(tp: Any, converter: Converter) -> Callable[[Any], bytes] | None:
    """Return the function that turns instances of a class into JSON text; None where there is no short way.

    Its text is what `dump_json` makes of what the class's own hook gives, as long as the interpreter refuses to write
    the same integers.  Whatever it raises, those two tell what is wrong.
    """
    if not can_be_hashed(tp) or not is_own(converter.get_unstructure_hook(tp)):
        return None
    shape = read_shape(tp)
    if shape.kind is not Kind.CLASS or shape.is_open:
        return None
    namespace: dict[str, Any] = {
        "cls": shape.type, "wanted": f"of type {shape.type.__qualname__}", "mismatch": mismatch, "check": shape.check,
        "q": quoted, "texts": frozenset({str}),
    }  # fmt: skip
    lines: list[str] = []
    parts: list[str] = []
    lead = "{" if shape.tag is None else f"{{{quote(shape.tag[0])}:{dump_json(shape.tag[1]).decode()},"
    for index, field in enumerate(shape.fields):
        name = f"v{index}"
        begin, kind, namespace[f"t{index}"] = _text_of_field(field, converter)
        namespace[f"kind{index}"] = kind
        lines.append(f" {name} = value.{field.name}")
        lines.append(f" {name} = {begin.format(name, index)}t{index}({name})")
        parts += [repr(f"{lead}{quote(field.key)}:"), name]
        lead = ","
    parts.append(repr("}" if lead == "," else lead.rstrip(",") + "}"))
    source = "\n".join(
        [
            "def encode(value):",
            " if type(value) is not cls: raise mismatch(value, wanted)",
            *lines,
            *([] if shape.check is None else [" check(value)"]),
            f" return ''.join(({', '.join(parts)},)).encode()",
        ]
    )
    exec(compile(source, f"<encode {shape.type.__qualname__}>", "exec"), namespace)  # noqa: S102  # names of fields
    encode: Callable[[Any], bytes] = namespace["encode"]
    return encode


def _text_of_field(field: Field, converter: Converter) -> tuple[str, Any, Callable[[Any], str]]:
    """Return the expression for most values of a field, the class that it asks for, and the long way for all others."""
    dump = dump_hook(field.type, converter)
    if field.convert is not None:
        return "", None, _long_way(settled(dump, field.convert))
    begin, kind = _SCALARS.get(dump), None
    if begin is None and can_be_hashed(field.type) and is_own(dump):
        shape = read_shape(field.type)
        if shape.kind is Kind.ARRAY and shape.type in (list, tuple):
            if dump_hook(shape.args[0], converter) is _DUMP_STR:
                begin, kind = _TEXTS, shape.type
        elif shape.kind is Kind.UNION and len(shape.args) == 2 and NoneType in shape.args:
            inner = dump_hook(next(arg for arg in shape.args if arg is not NoneType), converter)
            if inner in _SCALARS:
                begin = "'null' if {0} is None else " + _SCALARS[inner]
    return begin or "", kind, _long_way(dump)


def _long_way(dump: Dump) -> Callable[[Any], str]:
    return lambda value: dump_json(dump(value), nesting=MAX_NESTING - 1).decode()
