"""The hooks of a strict converter: which are its own, and what is asked of those that a user has added.

A user's hooks are held to what the converter's own do: what they write must read back as the value that it was.  That
is tried when a value is saved, before anything is written.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from strata_core.codec import check_json, copy_json
from strata_core.errors import InvalidInputError
from strata_core.graph._hints import is_alias
from strata_core.graph._leaves import Dump, Load
from strata_core.graph._misfit import MisfitError
from strata_core.graph._rebuilding import is_same
from strata_core.graph._shapes import Kind, UnsupportedTypeError
from strata_core.graph._types import read_shape

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["by_base", "can_be_hashed", "dump_hook", "is_known", "is_own", "load_hook", "own", "reads_back"]

F = TypeVar("F", bound=Callable[..., Any])

_OWN: Final[weakref.WeakSet[Callable[..., Any]]] = weakref.WeakSet()
_BY_BASE: Final[weakref.WeakSet[Callable[..., Any]]] = weakref.WeakSet()


def own(hook: F) -> F:
    """Note that a hook is a strict converter's own, and return it."""
    _OWN.add(hook)
    return hook


def by_base(hook: F) -> F:
    """Note that cattrs finds a hook for a class and its subclasses, before it asks any factory; and return it."""
    _BY_BASE.add(hook)
    return own(hook)


def is_own(hook: Callable[..., Any]) -> bool:
    """Tell whether a hook is a strict converter's own, and not a user's."""
    try:
        return hook in _OWN
    except TypeError:  # it cannot be referred to weakly, as ours can
        return False


def dump_hook(tp: Any, converter: Converter) -> Dump:
    """Return what writes values of a type: found at its first call when the type may contain itself."""
    return _lazy(lambda: _find_dump(tp, converter)) if _is_lazy(tp) else _find_dump(tp, converter)


def load_hook(tp: Any, converter: Converter) -> Load:
    """Return what reads values of a type: found at its first call when the type may contain itself."""
    return _lazy(lambda: _find_load(tp, converter)) if _is_lazy(tp) else _find_load(tp, converter)


def is_known(tp: Any, converter: Converter) -> bool:
    """Tell whether a user has added hooks for a type, in both directions."""
    try:
        return not (is_own(converter.get_unstructure_hook(tp)) or is_own(converter.get_structure_hook(tp)))
    except (UnsupportedTypeError, TypeError):  # a type that cannot be hashed has no hook of its own
        return False


def _is_lazy(tp: Any) -> bool:
    try:
        return is_alias(tp) or read_shape(tp).kind in (Kind.CLASS, Kind.TYPED_DICT)
    except UnsupportedTypeError:
        return False  # a user's hook may know it


def _lazy(find: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    found: list[Callable[..., Any]] = []

    def hook(*args: Any) -> Any:
        if not found:
            found.append(find())
        return found[0](*args)

    return hook


def _find_dump(tp: Any, converter: Converter) -> Dump:
    from strata_core.graph._unstructure import dump_factory  # which asks for the hooks of what is inside

    if not can_be_hashed(tp):
        return dump_factory(tp, converter)
    hook: Dump = converter.get_unstructure_hook(tp)
    if not is_own(hook):
        return reads_back(hook, _find_load(tp, converter), tp)
    return dump_factory(tp, converter) if hook in _BY_BASE else hook


def _find_load(tp: Any, converter: Converter) -> Load:
    from strata_core.graph._structure import load_factory

    if not can_be_hashed(tp):
        return load_factory(tp, converter)
    hook: Load = converter.get_structure_hook(tp)
    return load_factory(tp, converter) if is_own(hook) and hook in _BY_BASE else hook


def can_be_hashed(tp: Any) -> bool:
    """Tell whether cattrs can look a type up: an annotation in it may hold anything."""
    try:
        hash(tp)
    except TypeError:
        return False
    return True


def reads_back(dump: Dump, load: Load, tp: Any) -> Dump:
    """Return a user's hook that refuses a value which would not read back as itself."""

    def checked(value: Any) -> Any:
        content = dump(value)
        try:
            check_json(content)
        except InvalidInputError as error:
            raise MisfitError(f"its hook gives no JSON: {error.problem}").under(error.argument[5:]) from error
        try:
            again = load(copy_json(content), tp)
        except Exception as error:
            raise MisfitError(f"its hook refuses what it wrote itself: {type(error).__name__}: {error}") from error
        if not (is_same(value, again) if _compares(value) else _writes_same(dump, again, content)):
            raise MisfitError("its hooks do not give it back as it was")
        return content

    return checked


def _compares(value: Any) -> bool:
    compare: object = type(value).__eq__
    return compare is not object.__eq__


def _writes_same(dump: Dump, again: Any, content: Any) -> bool:
    return bool(dump(again) == content)
