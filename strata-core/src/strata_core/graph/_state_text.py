"""From states to JSON text in one step, for classes with fields.

What a class's own hook makes would be walked once more to be checked, and once more to be written.  The text of an
exact str, int, float or bool needs neither.  Whatever else a field holds goes the long way; and so does the whole state
when anything is wrong with it, since that way names the path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from strata_core.codec import dump_json
from strata_core.codec._json import MAX_NESTING, quote, quoted
from strata_core.graph._leaves import Dump, leaf_of
from strata_core.graph._misfit import mismatch
from strata_core.graph._own_hooks import can_be_hashed, dump_hook, is_own
from strata_core.graph._rebuilding import settled
from strata_core.graph._shapes import Field, Kind
from strata_core.graph._types import read_shape

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["Text", "text_of_class"]

Text = Callable[[Any], str]
"""Returns the JSON text of a value; whatever it raises, the long way tells why."""

_INLINE: Final = {
    leaf.dump: text
    for kind, text in (
        (str, "q({0}) if type({0}) is str else"),
        (int, "{0} if type({0}) is int else"),
        (bool, "'true' if {0} is True else 'false' if {0} is False else"),
        (float, "repr({0}) if type({0}) is float and {0} - {0} == 0 else"),
    )
    if (leaf := leaf_of(kind)) is not None
}
"""How the scalars of a hook become text; a float that is none in JSON is not equal to itself without itself."""
_TEXTS: Final = frozenset({str})


def text_of_class(tp: Any, converter: Converter) -> Text | None:
    """Return the function that turns instances of a class into JSON text; None where there is no short way.

    It gives what `dump_json` makes of what the class's hook gives, or raises.
    """
    if not can_be_hashed(tp) or not is_own(converter.get_unstructure_hook(tp)):
        return None
    shape = read_shape(tp)
    if shape.kind is not Kind.CLASS or shape.is_open:
        return None
    namespace: dict[str, Any] = {"cls": shape.type, "mismatch": mismatch, "check": shape.check, "q": quoted}
    lines, parts = [], []
    lead = "{" if shape.tag is None else f"{{{quote(shape.tag[0])}:{dump_json(shape.tag[1]).decode()},"
    for index, field in enumerate(shape.fields):
        namespace[f"k{index}"] = f"{lead}{quote(field.key)}:"
        inline, namespace[f"t{index}"] = _text_of_field(field, converter)
        value = f"v{index}"
        lines.append(f" {value} = value.{field.name}")
        lines.append(f" {value} = {inline.format(value)} t{index}({value})")
        parts.append(f"{{k{index}}}{{{value}}}")
        lead = ","
    namespace["end"] = "}" if parts else "{}" if shape.tag is None else lead[:-1] + "}"
    source = "\n".join(
        [
            "def text(value):",
            f" if type(value) is not cls: raise mismatch(value, {shape.type.__qualname__!r})",
            *lines,
            *([] if shape.check is None else [" check(value)"]),
            f' return f"{"".join(parts)}{{end}}"',
        ]
    )
    exec(compile(source, f"<text of {shape.type.__qualname__}>", "exec"), namespace)  # noqa: S102  # names of fields
    text: Text = namespace["text"]
    return text


def _text_of_field(field: Field, converter: Converter) -> tuple[str, Text]:
    """Return the short way for most values of a field, and the way for all others."""
    dump = dump_hook(field.type, converter)
    if field.convert is not None:
        return "", _text_of_content(settled(dump, field.convert))
    shape = read_shape(field.type) if can_be_hashed(field.type) and is_own(dump) else None
    if shape is not None and shape.kind is Kind.ARRAY and shape.type in (list, tuple):
        item = dump_hook(shape.args[0], converter)
        if _INLINE.get(item) == _INLINE.get(_dump_of_str):
            return "", _text_of_strings(shape.type, _text_of_content(dump))
    return _INLINE.get(dump, ""), _text_of_content(dump)


_leaf_of_str = leaf_of(str)
_dump_of_str: Final = None if _leaf_of_str is None else _leaf_of_str.dump


def _text_of_content(dump: Dump) -> Text:
    return lambda value: dump_json(dump(value), nesting=MAX_NESTING - 1).decode()


def _text_of_strings(kind: type, other: Text) -> Text:
    def text(value: Any) -> str:
        if type(value) is not kind:
            return other(value)
        return f"[{','.join([quoted(item) if type(item) is str else _refuse() for item in value])}]"

    return text
def _refuse(): raise TypeError
