"""The strict converter: what `strata_core.graph._types` lists, in both directions, and nothing else.

It is a cattrs converter, so that users can take it, register hooks for their own types, and give it to a graph.
Unstructuring is strict as well: a value that would not read back as itself (a subclass, a list where a tuple is
declared) is refused when it is saved, not days later.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from strata_core.graph._types import Field, Kind, Shape, UnsupportedTypeError, read_shape

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["MisfitError", "strict_converter"]

_Dump = Callable[[Any], Any]
_Load = Callable[[Any, Any], Any]


class MisfitError(Exception):
    """A value does not fit its type.

    Attributes:
        steps: The path to it, from the outside in: ``.field`` and ``[3]``.
        problem: What is wrong.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.steps: list[str] = []
        self.problem = problem

    def under(self, step: str) -> MisfitError:
        """Note that this happened inside `step`, and return itself."""
        self.steps.insert(0, step)
        return self


def strict_converter() -> Converter:
    """Return a new strict cattrs converter: register hooks for your own types, and give it to a `StateGraph`.

    The types it knows, and their JSON forms, are those that a graph without a converter knows.
    """
    from cattrs import Converter

    converter = Converter()
    converter.register_unstructure_hook_factory(lambda _: True, _dump_factory)
    converter.register_structure_hook_factory(lambda _: True, _load_factory)
    # cattrs has hooks of its own for these classes and their subclasses, which come before every factory.
    for kind in (str, bytes, int, float):
        converter.register_structure_hook(kind, lambda value, tp: _load_factory(tp, converter)(value, tp))
    for kind in (str, bytes):
        converter.register_unstructure_hook(kind, _unstructure_text)
    return converter


def _unstructure_text(value: Any) -> Any:
    if type(value) is str:
        return value
    raise _mismatch(value, "a str")


def _mismatch(value: Any, wanted: str) -> MisfitError:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return MisfitError(f"must be {wanted}, not {name}")


# --- leaves ------------------------------------------------------------------------------------------------------


def _exactly(kind: type, wanted: str) -> _Dump:
    def check(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise _mismatch(value, wanted)

    return check


def _dump_float(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise _mismatch(value, "a float")


def _load_float(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            return value
        return number if number == value else value  # beyond 53 bits only the int is exact
    raise _mismatch(value, "a number")


def _dump_decimal(value: Any) -> str:
    if type(value) is not Decimal:
        raise _mismatch(value, "a Decimal")
    if not value.is_finite():
        raise MisfitError(f"{value} is no number")
    return str(value)


def _load_decimal(value: Any) -> Decimal:
    try:
        number = Decimal(_text(value, "the text of a Decimal"))
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise MisfitError("must be the text of a finite Decimal, such as '4150.25'")
    return number


def _load_uuid(value: Any) -> UUID:
    try:
        found = UUID(_text(value, "the text of a UUID"))
    except ValueError:
        found = None
    if found is None or str(found) != value:
        raise MisfitError("must be the text of a UUID, in lower case with hyphens")
    return found


def _dump_uuid(value: Any) -> str:
    if type(value) is not UUID:
        raise _mismatch(value, "a UUID")
    return str(value)


def _dump_datetime(value: Any) -> str:
    if type(value) is not datetime:
        raise _mismatch(value, "a datetime")
    if value.utcoffset() is None:
        raise MisfitError("must be an aware datetime, for example datetime.now(timezone.utc)")
    text = value.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _load_datetime(value: Any) -> datetime:
    text = _text(value, "the text of an aware datetime")
    try:
        moment = datetime.fromisoformat(text) if "T" in text else None
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise MisfitError("must be an aware datetime as ISO 8601 text, such as '2026-10-30T14:49:52Z'")
    return moment


def _dump_date(value: Any) -> str:
    if type(value) is not date:
        raise _mismatch(value, "a date")
    return value.isoformat()


def _load_date(value: Any) -> date:
    text = _text(value, "the text of a date")
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise MisfitError("must be a date as ISO 8601 text, such as '2026-10-30'")
    return day


def _text(value: Any, wanted: str) -> str:
    if type(value) is str:
        return value
    raise _mismatch(value, wanted)


_NONE: Final = _exactly(type(None), "None")
_BOOL: Final = _exactly(bool, "a bool")
_INT: Final = _exactly(int, "an int")
_STR: Final = _exactly(str, "a str")
_LEAVES: Final[dict[type, tuple[_Dump, _Dump]]] = {
    type(None): (_NONE, _exactly(type(None), "null")),
    bool: (_BOOL, _BOOL),
    int: (_INT, _INT),
    float: (_dump_float, _load_float),
    str: (_STR, _STR),
    Decimal: (_dump_decimal, _load_decimal),
    UUID: (_dump_uuid, _load_uuid),
    datetime: (_dump_datetime, _load_datetime),
    date: (_dump_date, _load_date),
}

# --- unstructuring -----------------------------------------------------------------------------------------------


def _dump_factory(tp: Any, converter: Converter) -> _Dump:
    shape = read_shape(tp)
    kind = shape.kind
    if kind is Kind.ANY:
        return lambda value: value
    if kind is Kind.LEAF:
        return _LEAVES[shape.type][0]
    if kind is Kind.ENUM:
        wanted = f"a {shape.type.__qualname__}"

        def dump_enum(value: Any) -> Any:
            if type(value) is shape.type:
                return value.value
            raise _mismatch(value, wanted)

        return dump_enum
    if kind is Kind.LITERAL:
        return _literal(shape)
    if kind is Kind.UNION:
        return _dump_union(shape, converter)
    if shape.args == (Any,) and kind in (Kind.LIST, Kind.DICT):
        return _exactly(list, "a list") if kind is Kind.LIST else _exactly(dict, "a dict")
    if kind in (Kind.LIST, Kind.TUPLE):
        return _dump_items(list if kind is Kind.LIST else tuple, _lazy_dump(shape.args[0], converter))
    if kind is Kind.DICT:
        return _dump_values(_lazy_dump(shape.args[0], converter))
    if kind is Kind.FIXED_TUPLE:
        return _dump_fixed([_lazy_dump(arg, converter) for arg in shape.args])
    return _dump_typed_dict(shape, converter) if kind is Kind.TYPED_DICT else _dump_class(shape, converter)


def _lazy_dump(tp: Any, converter: Converter) -> _Dump:
    """Return the hook of a type, found at its first call when the type contains itself."""
    try:
        kind = read_shape(tp).kind
    except UnsupportedTypeError:
        kind = Kind.ANY  # a user's hook may know it
    if kind not in (Kind.CLASS, Kind.TYPED_DICT):
        return converter.get_unstructure_hook(tp)
    hook: list[_Dump] = []

    def dump(value: Any) -> Any:
        if not hook:
            hook.append(converter.get_unstructure_hook(tp))
        return hook[0](value)

    return dump


def _dump_union(shape: Shape, converter: Converter) -> _Dump:
    others = [arg for arg in shape.args if arg not in (None, type(None))]
    optional = len(others) < len(shape.args)
    if len(others) == 1:
        inner = _lazy_dump(others[0], converter)
        return lambda value: None if value is None else inner(value)
    allowed = frozenset(others) | (frozenset({type(None)}) if optional else frozenset())
    return _one_of(allowed)


def _one_of(allowed: frozenset[type]) -> _Dump:
    wanted = " or ".join(sorted("None" if kind is type(None) else kind.__name__ for kind in allowed))
    accepted = allowed | {int} if float in allowed else allowed

    def check(value: Any) -> Any:
        if type(value) in accepted:
            return value
        raise _mismatch(value, wanted)

    return check


def _literal(shape: Shape) -> _Dump:
    allowed = {(type(arg), arg) for arg in shape.args}
    wanted = " or ".join(repr(arg) for arg in shape.args)

    def check(value: Any) -> Any:
        try:
            if (type(value), value) in allowed:
                return value
        except TypeError:  # it cannot be hashed
            pass
        raise MisfitError(f"must be {wanted}")

    return check


def _dump_items(kind: type[list[Any] | tuple[Any, ...]], inner: _Dump) -> _Dump:
    def dump(value: Any) -> list[Any]:
        if type(value) is not kind:
            raise _mismatch(value, f"a {kind.__name__}")
        try:
            return [inner(item) for item in value]
        except MisfitError:
            raise _locate((f"[{index}]", inner, item) for index, item in enumerate(value)) from None

    return dump


def _dump_values(inner: _Dump) -> _Dump:
    def dump(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _mismatch(value, "a dict")
        try:
            return {key: inner(item) for key, item in value.items()}
        except MisfitError:
            raise _locate((f".{key}", inner, item) for key, item in value.items()) from None

    return dump


def _dump_fixed(inners: list[_Dump]) -> _Dump:
    def dump(value: Any) -> list[Any]:
        if type(value) is not tuple or len(value) != len(inners):
            raise _mismatch(value, f"a tuple of {len(inners)}")
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


def _dump_typed_dict(shape: Shape, converter: Converter) -> _Dump:
    inners = {field.name: _lazy_dump(field.type, converter) for field in shape.fields}
    required = [field.name for field in shape.fields if field.required]

    def dump(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _mismatch(value, "a dict")
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


def _dump_class(shape: Shape, converter: Converter) -> _Dump:
    """Generate the function that takes an instance apart: exact scalars are checked inline, the rest by their hooks."""
    fields = shape.fields
    inners = [_lazy_dump(field.type, converter) for field in fields]
    items, lines = [], []
    for index, field in enumerate(fields):
        inline = _INLINE.get(field.type)
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
        "wanted": f"a {shape.type.__qualname__}",
        "mismatch": _mismatch,
        "Misfit": MisfitError,
        "locate": _locate,
        "inners": [(field.name, inner) for field, inner in zip(fields, inners, strict=True)],
    }
    exec(compile(source, f"<unstructure {shape.type.__qualname__}>", "exec"), namespace)  # noqa: S102  # names of fields
    dump: _Dump = namespace["dump"]
    return dump


# --- structuring -------------------------------------------------------------------------------------------------


def _load_factory(tp: Any, converter: Converter) -> _Load:
    shape = read_shape(tp)
    kind = shape.kind
    if kind is Kind.ANY:
        return lambda value, _: value
    if kind is Kind.LEAF:
        load = _LEAVES[shape.type][1]
        return lambda value, _: load(value)
    if kind is Kind.ENUM:
        return _load_enum(shape.type)
    if kind is Kind.LITERAL:
        check = _literal(shape)
        return lambda value, _: check(value)
    if kind is Kind.UNION:
        return _load_union(shape, converter)
    if kind in (Kind.LIST, Kind.TUPLE):
        return _load_items(shape, converter, list if kind is Kind.LIST else tuple)
    if kind is Kind.DICT:
        inner, arg = converter.get_structure_hook, shape.args[0]
        return lambda value, _: {key: _inside(f".{key}", inner(arg), item, arg) for key, item in _object(value).items()}
    if kind is Kind.FIXED_TUPLE:
        return _load_fixed(shape, converter)
    return _load_fields(shape, converter)


def _inside(step: str, load: _Load, value: Any, tp: Any) -> Any:
    try:
        return load(value, tp)
    except MisfitError as error:
        raise error.under(step) from None


def _object(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise _mismatch(value, "an object")


def _array(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    raise _mismatch(value, "an array")


def _load_enum(kind: Any) -> _Load:
    members = {(type(member.value), member.value): member for member in kind}

    def load(value: Any, _: Any) -> Any:
        if type(value) in (str, int) and (type(value), value) in members:
            return members[type(value), value]
        raise MisfitError(f"must be a value of {kind.__qualname__}: {', '.join(repr(m.value) for m in kind)}")

    return load


def _load_union(shape: Shape, converter: Converter) -> _Load:
    others = [arg for arg in shape.args if arg not in (None, type(None))]
    if len(others) == 1:
        arg = others[0]
        return lambda value, _: None if value is None else converter.get_structure_hook(arg)(value, arg)
    optional = len(others) < len(shape.args)
    check = _one_of(frozenset(others) | (frozenset({type(None)}) if optional else frozenset()))
    return lambda value, _: check(value)


def _load_items(shape: Shape, converter: Converter, kind: Callable[[list[Any]], Any]) -> _Load:
    arg = shape.args[0]

    def load(value: Any, _: Any) -> Any:
        inner = converter.get_structure_hook(arg)
        return kind([_inside(f"[{index}]", inner, item, arg) for index, item in enumerate(_array(value))])

    return load


def _load_fixed(shape: Shape, converter: Converter) -> _Load:
    args = shape.args

    def load(value: Any, _: Any) -> Any:
        if len(_array(value)) != len(args):
            raise MisfitError(f"must be an array of {len(args)}, not of {len(value)}")
        return tuple(
            _inside(f"[{index}]", converter.get_structure_hook(arg), item, arg)
            for index, (arg, item) in enumerate(zip(args, value, strict=True))
        )

    return load


def _load_fields(shape: Shape, converter: Converter) -> _Load:
    fields: dict[str, Field] = {field.name: field for field in shape.fields}
    make = shape.type
    is_class = shape.kind is Kind.CLASS

    @cache
    def hook(name: str) -> _Load:
        return converter.get_structure_hook(fields[name].type)

    def load(value: Any, _: Any) -> Any:
        for key in _object(value):
            if key not in fields:
                raise MisfitError(f"is no field of {make.__qualname__}").under(f".{key}")
        for field in fields.values():
            if field.required and field.name not in value:
                raise MisfitError("is missing").under(f".{field.name}")
        found = {key: _inside(f".{key}", hook(key), item, fields[key].type) for key, item in value.items()}
        if not is_class:
            return found
        try:
            return make(**{fields[key].alias: item for key, item in found.items()})
        except Exception as error:
            raise MisfitError(f"{make.__qualname__} refuses it: {type(error).__name__}: {error}") from error

    return load
