"""From states to JSON values, strictly."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from strata_core.codec import dump_json
from strata_core.errors import InvalidInputError
from strata_core.graph._leaves import Dump, leaf_of, literal
from strata_core.graph._misfit import MisfitError, mismatch
from strata_core.graph._object_keys import Codec, key_codec
from strata_core.graph._own_hooks import dump_hook, own
from strata_core.graph._rebuilding import settled
from strata_core.graph._shapes import Kind, Shape
from strata_core.graph._structure import default_factory
from strata_core.graph._types import read_shape
from strata_core.graph._unions import Member, choose_object, find_members

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["dump_factory"]


def dump_factory(tp: Any, converter: Converter) -> Dump:
    """Return the function that turns values of a type into JSON values.

    Raises:
        UnsupportedTypeError: The type has no JSON form here.
    """
    return own(_dump_of(read_shape(tp), converter))


def _dump_of(shape: Shape, converter: Converter) -> Dump:
    kind = shape.kind
    if kind is Kind.ANY:
        return lambda value: value
    if kind is Kind.LEAF and (leaf := leaf_of(shape.type)) is not None:
        return leaf.dump
    if kind in (Kind.ENUM, Kind.FLAG):
        return _dump_enum(shape.type)
    if kind is Kind.LITERAL:
        return literal(shape.args)
    if kind is Kind.UNION:
        return _dump_union(shape, converter)
    if kind is Kind.ARRAY:
        inner = dump_hook(shape.args[0], converter)
        if shape.type in (set, frozenset):
            return _dump_set(shape.type, inner)
        items = _dump_items(shape.type, inner)
        return _unlimited(items) if shape.type is deque else items
    if kind is Kind.OBJECT:
        values = _dump_values(shape.type, key_codec(shape.args[0]), dump_hook(shape.args[1], converter))
        return _with_factory(values, default_factory(shape)) if shape.type is defaultdict else values
    if kind is Kind.FIXED_TUPLE:
        return _dump_fixed([dump_hook(arg, converter) for arg in shape.args])
    return _dump_typed_dict(shape, converter) if kind is Kind.TYPED_DICT else _dump_class(shape, converter)


def _dump_enum(kind: Any) -> Dump:
    wanted = f"of type {kind.__qualname__}"

    def dump(value: Any) -> Any:
        if type(value) is not kind:
            raise mismatch(value, wanted)
        return value.value

    return dump


def _dump_union(shape: Shape, converter: Converter) -> Dump:
    others = [arg for arg in shape.args if arg is not type(None)]
    if len(others) == 1:
        inner = dump_hook(others[0], converter)
        return lambda value: None if value is None else inner(value)
    members = find_members(shape.type, shape.args)
    hooks = {id(member): dump_hook(member.type, converter) for member in members}
    choices: dict[type, list[Member]] = {}
    for member in members:
        for cls in _classes_of(member):
            choices.setdefault(cls, []).append(member)
    wanted = " or ".join(sorted("None" if cls is type(None) else cls.__qualname__ for cls in choices))

    def dump(value: Any) -> Any:
        found = choices.get(type(value))
        if not found:
            raise mismatch(value, wanted)
        if len(found) > 1 and type(value) is dict:
            return hooks[id(choose_object(found, value))](value)
        for member in found[:-1]:
            try:
                return hooks[id(member)](value)
            except MisfitError:
                continue
        return hooks[id(found[-1])](value)

    return dump


def _classes_of(member: Member) -> frozenset[type]:
    """Return the classes of which the values of a member are."""
    shape = member.shape
    if shape.kind is Kind.LITERAL:
        return frozenset(map(type, shape.args))
    if shape.kind is Kind.LEAF and (leaf := leaf_of(shape.type)) is not None:
        return leaf.classes
    return frozenset(
        {dict if shape.kind is Kind.TYPED_DICT else tuple if shape.kind is Kind.FIXED_TUPLE else shape.type}
    )


_EXACT: Final[dict[Any, frozenset[type]]] = {
    leaf.dump: classes
    for kind, classes in (
        (str, frozenset({str})),
        (bool, frozenset({bool})),
        (int, frozenset({int})),
        (float, frozenset({float, int})),
    )
    if (leaf := leaf_of(kind)) is not None
}
"""The hooks that return what they are given, with the classes that they accept."""


def _dump_items(kind: Any, inner: Dump) -> Dump:
    as_they_are = _EXACT.get(inner, frozenset())

    def dump(value: Any) -> list[Any]:
        if type(value) is not kind:
            raise mismatch(value, f"a {kind.__name__}")
        if as_they_are.issuperset(map(type, value)):
            return [*value]
        try:
            return [inner(item) for item in value]
        except MisfitError:
            raise _locate((f"[{index}]", inner, item) for index, item in enumerate(value)) from None

    return dump


def _unlimited(dump: Dump) -> Dump:
    def check(value: Any) -> Any:
        if type(value) is deque and value.maxlen is not None:
            raise MisfitError("has a maxlen, which is not saved")
        return dump(value)

    return check


def _dump_set(kind: Any, inner: Dump) -> Dump:
    """Return the hook of a set, whose items are sorted, so that equal sets are equal JSON."""

    def dump(value: Any) -> list[Any]:
        if type(value) is not kind:
            raise mismatch(value, f"a {kind.__name__}")
        try:
            items = [inner(item) for item in value]
        except MisfitError:
            raise _locate(("[...]", inner, item) for item in value) from None
        types = set(map(type, items))
        if types <= {int, float} or types <= {str}:
            return sorted(items)
        try:
            return sorted(items, key=dump_json)
        except InvalidInputError as error:
            raise MisfitError(error.problem).under("[...]" + error.argument[5:]) from None

    return dump


def _dump_values(kind: Any, keys: Codec | None, inner: Dump) -> Dump:
    as_they_are = _EXACT.get(inner, frozenset()) if keys is None and kind is dict else frozenset()

    def dump(value: Any) -> dict[str, Any]:
        if type(value) is not kind:
            raise mismatch(value, f"a {kind.__name__}")
        if as_they_are.issuperset(map(type, value.values())):
            return {**value}
        if keys is not None:
            return _with_keys(value, keys[0], inner)
        try:
            return {key: inner(item) for key, item in value.items()}
        except MisfitError:
            raise _locate((f".{key}", inner, item) for key, item in value.items()) from None

    return dump


def _with_keys(value: dict[Any, Any], write: Dump, inner: Dump) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        try:
            text = write(key)
            found[text] = inner(item)
        except MisfitError as error:
            raise error.under(f".{key!r}" if type(key) is not str else f".{key}") from None
    return found


def _with_factory(dump: Dump, factory: Any) -> Dump:
    def check(value: Any) -> Any:
        content = dump(value)
        if value.default_factory is not factory:
            wanted = "one whose type tells its factory" if factory is None else f"defaultdict({factory.__name__})"
            raise MisfitError(f"must be {wanted}: the factory itself is not saved")
        return content

    return check


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
    inners = {field.name: dump_hook(field.type, converter) for field in shape.fields}
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


_INLINE: Final[dict[Any, str]] = {
    leaf.dump: kind.__name__ for kind in (bool, int, str, float) if (leaf := leaf_of(kind)) is not None
}


def _dump_class(shape: Shape, converter: Converter) -> Dump:
    """Generate the function that takes an instance apart: exact scalars are checked inline, the rest by their hooks."""
    fields = shape.fields
    inners = [dump_hook(field.type, converter) for field in fields]
    inners = [
        inner if field.convert is None else settled(inner, field.convert)
        for field, inner in zip(fields, inners, strict=True)
    ]
    items = [] if shape.tag is None else [f"{shape.tag[0]!r}: {shape.tag[1]!r}"]
    lines = []
    for index, field in enumerate(fields):
        inline = _INLINE.get(inners[index])
        if inline is None:
            items.append(f"{field.key!r}: d{index}(value.{field.name})")
        else:
            lines.append(f"  v{index} = value.{field.name}")
            items.append(f"{field.key!r}: v{index} if type(v{index}) is {inline} else d{index}(v{index})")
    if shape.is_open:
        items.append("**extras(value)")
    source = "\n".join(
        [
            "def dump(value):",
            " if type(value) is not cls: raise mismatch(value, wanted)",
            " try:",
            *lines,
            f"  {'return' if shape.check is None else 'content ='} {{{', '.join(items)}}}",
            " except Misfit:",
            "  raise locate([('.' + key, inner, getattr(value, name)) for key, name, inner in inners]) from None",
            *([] if shape.check is None else [" check(value)", " return content"]),
        ]
    )
    namespace: dict[str, Any] = {f"d{index}": inner for index, inner in enumerate(inners)}
    namespace |= {
        "cls": shape.type,
        "wanted": f"of type {shape.type.__qualname__}",
        "mismatch": mismatch,
        "Misfit": MisfitError,
        "locate": _locate,
        "check": shape.check,
        "extras": _extras,
        "inners": [(field.key, field.name, inner) for field, inner in zip(fields, inners, strict=True)],
    }
    exec(compile(source, f"<unstructure {shape.type.__qualname__}>", "exec"), namespace)  # noqa: S102  # names of fields
    dump: Dump = namespace["dump"]
    return dump


def _extras(value: Any) -> dict[str, Any]:
    from strata_core.graph._models import extras_of

    return extras_of(value)
