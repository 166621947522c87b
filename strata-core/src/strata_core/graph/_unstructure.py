"""From states to JSON values, strictly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from strata_core.graph._leaves import LEAVES, Dump, exactly, literal, one_of
from strata_core.graph._misfit import MisfitError, mismatch
from strata_core.graph._types import Kind, Shape, UnsupportedTypeError, read_shape

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["dump_factory", "dump_text"]

dump_text: Final = exactly(str, "a str")
"""The hook of ``str``, which cattrs also finds for its subclasses."""


def dump_factory(tp: Any, converter: Converter) -> Dump:
    """Return the function that turns values of a type into JSON values.

    Raises:
        UnsupportedTypeError: The type has no JSON form here.
    """
    shape = read_shape(tp)
    kind = shape.kind
    if kind is Kind.ANY:
        return lambda value: value
    if kind is Kind.LEAF:
        return LEAVES[shape.type][0]
    if kind is Kind.ENUM:
        return _dump_enum(shape.type)
    if kind is Kind.LITERAL:
        return literal(shape)
    if kind is Kind.UNION:
        return _dump_union(shape, converter)
    if shape.args == (Any,) and kind in (Kind.LIST, Kind.DICT):
        return exactly(list, "a list") if kind is Kind.LIST else exactly(dict, "a dict")
    if kind in (Kind.LIST, Kind.TUPLE):
        return _dump_items(list if kind is Kind.LIST else tuple, _lazy_dump(shape.args[0], converter))
    if kind is Kind.DICT:
        return _dump_values(_lazy_dump(shape.args[0], converter))
    if kind is Kind.FIXED_TUPLE:
        return _dump_fixed([_lazy_dump(arg, converter) for arg in shape.args])
    return _dump_typed_dict(shape, converter) if kind is Kind.TYPED_DICT else _dump_class(shape, converter)


def _dump_enum(kind: Any) -> Dump:
    wanted = f"of type {kind.__qualname__}"
    values = {member.value for member in kind.__members__.values()}

    def dump(value: Any) -> Any:
        if type(value) is not kind:
            raise mismatch(value, wanted)
        if value.value not in values:
            raise MisfitError(f"must be one member of {kind.__qualname__}, not a combination without a name")
        return value.value

    return dump


def _settled(inner: Dump, convert: Callable[[Any], Any]) -> Dump:
    """Return a hook that refuses a value which its own converter would change again at every resume."""

    def dump(value: Any) -> Any:
        content = inner(value)
        try:
            again = convert(value)
            same = again is value or bool(again == value)
        except Exception as error:
            raise MisfitError(f"its converter refuses its own result: {type(error).__name__}: {error}") from error
        if not same:
            raise MisfitError("its converter changes its own result, so that every resume would change the state")
        return content

    return dump


def _lazy_dump(tp: Any, converter: Converter) -> Dump:
    """Return the hook of a type, found at its first call when the type contains itself."""
    try:
        kind = read_shape(tp).kind
    except UnsupportedTypeError:
        kind = Kind.ANY  # a user's hook may know it
    if kind not in (Kind.CLASS, Kind.TYPED_DICT):
        found: Dump = converter.get_unstructure_hook(tp)
        # An enum that is a str as well: only a user's hook for that very class would come before the one of str.
        return dump_factory(tp, converter) if kind is Kind.ENUM and found is dump_text else found
    hook: list[Dump] = []

    def dump(value: Any) -> Any:
        if not hook:
            hook.append(converter.get_unstructure_hook(tp))
        return hook[0](value)

    return dump


def _dump_union(shape: Shape, converter: Converter) -> Dump:
    others = [arg for arg in shape.args if arg not in (None, type(None))]
    optional = len(others) < len(shape.args)
    if len(others) == 1:
        inner = _lazy_dump(others[0], converter)
        return lambda value: None if value is None else inner(value)
    allowed = frozenset(others) | (frozenset({type(None)}) if optional else frozenset())
    return one_of(allowed)


def _dump_items(kind: type[list[Any] | tuple[Any, ...]], inner: Dump) -> Dump:
    def dump(value: Any) -> list[Any]:
        if type(value) is not kind:
            raise mismatch(value, f"a {kind.__name__}")
        try:
            return [inner(item) for item in value]
        except MisfitError:
            raise _locate((f"[{index}]", inner, item) for index, item in enumerate(value)) from None

    return dump


def _dump_values(inner: Dump) -> Dump:
    def dump(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise mismatch(value, "a dict")
        try:
            return {key: inner(item) for key, item in value.items()}
        except MisfitError:
            raise _locate((f".{key}", inner, item) for key, item in value.items()) from None

    return dump


def _dump_fixed(inners: list[Dump]) -> Dump:
    def dump(value: Any) -> list[Any]:
        if type(value) is not tuple or len(value) != len(inners):
            raise mismatch(value, f"a tuple of {len(inners)}")
        try:
            return [inner(item) for inner, item in zip(inners, value, strict=True)]
        except MisfitError:
            steps = zip(inners, value, strict=True)
            raise _locate((f"[{index}]", inner, item) for index, (inner, item) in enumerate(steps)) from None

    return dump


def _locate(parts: Any) -> MisfitError:
    """Return the error of the first part that does not fit, with its step; only ever called when one does not."""
    for step, inner, item in parts:
        try:
            inner(item)
        except MisfitError as error:
            return error.under(step)
    return MisfitError("changed while it was saved")


def _dump_typed_dict(shape: Shape, converter: Converter) -> Dump:
    inners = {field.name: _lazy_dump(field.type, converter) for field in shape.fields}
    required = [field.name for field in shape.fields if field.required]

    def dump(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise mismatch(value, "a dict")
        for name in required:
            if name not in value:
                raise MisfitError("is missing").under(f".{name}")
        try:
            return {key: inners[key](item) for key, item in value.items()}
        except KeyError:
            unknown = next(key for key in value if key not in inners)
            raise MisfitError(f"is no key of {shape.type.__qualname__}").under(f".{unknown}") from None
        except MisfitError:
            raise _locate((f".{key}", inners[key], item) for key, item in value.items()) from None

    return dump


_INLINE: Final = {bool: "bool", int: "int", str: "str", float: "float"}


def _dump_class(shape: Shape, converter: Converter) -> Dump:
    """Generate the function that takes an instance apart: exact scalars are checked inline, the rest by their hooks."""
    fields = shape.fields
    inners = [_lazy_dump(field.type, converter) for field in fields]
    inners = [
        inner if field.convert is None else _settled(inner, field.convert)
        for field, inner in zip(fields, inners, strict=True)
    ]
    items, lines = [], []
    for index, field in enumerate(fields):
        inline = None if field.convert else _INLINE.get(field.type)
        if inline is None:
            items.append(f"{field.name!r}: d{index}(value.{field.name})")
        else:
            lines.append(f"  v{index} = value.{field.name}")
            items.append(f"{field.name!r}: v{index} if type(v{index}) is {inline} else d{index}(v{index})")
    source = "\n".join(
        [
            "def dump(value):",
            " if type(value) is not cls: raise mismatch(value, wanted)",
            " try:",
            *lines,
            f"  return {{{', '.join(items)}}}",
            " except Misfit:",
            "  raise locate([('.' + name, inner, getattr(value, name)) for name, inner in inners]) from None",
        ]
    )
    namespace: dict[str, Any] = {f"d{index}": inner for index, inner in enumerate(inners)}
    namespace |= {
        "cls": shape.type,
        "wanted": f"of type {shape.type.__qualname__}",
        "mismatch": mismatch,
        "Misfit": MisfitError,
        "locate": _locate,
        "inners": [(field.name, inner) for field, inner in zip(fields, inners, strict=True)],
    }
    exec(compile(source, f"<unstructure {shape.type.__qualname__}>", "exec"), namespace)  # noqa: S102  # names of fields
    dump: Dump = namespace["dump"]
    return dump
