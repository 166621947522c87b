"""A graph's state type: from the state to JSON and back."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from strata_core.errors import InvalidInputError, RehydrationError

if TYPE_CHECKING:
    from cattrs import Converter

    from strata_core.codec._encoded import EncodedState

__all__ = ["StateCodec", "state_class", "strict_converter"]

S = TypeVar("S")


def strict_converter() -> Converter:
    """Return a new strict cattrs converter: register hooks for your own types, and give it to a `StateGraph`.

    The types it knows, and their JSON forms, are those that a graph without a converter knows.
    """
    from strata_core.graph._strict import StrictConverter

    return StrictConverter()


def state_class(state_type: object) -> type:
    """Return the class whose instances are states of that type.

    Raises:
        InvalidInputError: The type does not become a JSON object.
    """
    from strata_core.graph._fielded import is_class_with_fields, is_typed_dict

    origin = typing.get_origin(state_type) or state_type
    if origin in (dict, Mapping) or is_typed_dict(origin):
        return dict
    if isinstance(origin, type) and is_class_with_fields(origin):
        return origin
    kinds = "an attrs class, a dataclass, a TypedDict, a msgspec.Struct, a pydantic model or dict"
    raise InvalidInputError("state_type", f"must be {kinds}, not {state_type!r}")


class StateCodec(Generic[S]):
    """Turns states of one type into JSON objects and back.

    The converter is made, and cattrs imported, at the first use.

    Args:
        state_type: The type of the states.
        converter: The user's converter; None for the strict one.
    """

    def __init__(self, state_type: Any, converter: Any = None) -> None:
        self.type = state_type
        self.cls = state_class(state_type)
        self._given = converter
        self._dump: Callable[[S], Any] | None = None
        self._load: Callable[[Any, Any], S] | None = None
        self._encode: Callable[[S], EncodedState] | None = None

    def dump(self, state: S) -> dict[str, Any]:
        """Return the state as a JSON object.

        Raises:
            InvalidInputError: Something in it has no JSON form that would read back as itself; names the path.
        """
        dump = self._dump or self._prepare()
        try:
            content = dump(state)
        except Exception as error:
            path, problem = _place(error)
            raise InvalidInputError(path, problem) from error
        if type(content) is not dict:
            raise InvalidInputError("state", f"must become a JSON object, not {type(content).__name__}")
        return content

    def encode(self, state: S) -> EncodedState:
        """Return the state as JSON text: what `dump_json` makes of what `dump` gives, for some types in a shorter way.

        Raises:
            InvalidInputError: As the two do.
        """
        return (self._encode or self._find_encoder())(state)

    def load(self, content: Mapping[str, Any]) -> S:
        """Return the state that a JSON object describes.

        Raises:
            RehydrationError: It does not fit the type; names the path.
        """
        if self._load is None:
            self._prepare()
        load = typing.cast("Callable[[Any, Any], S]", self._load)
        try:
            return load(content, self.type)
        except Exception as error:
            path, problem = _place(error)
            raise RehydrationError(path, problem) from error

    def _prepare(self) -> Callable[[S], Any]:
        from strata_core.graph._own_hooks import dump_hook, load_hook, reads_back
        from strata_core.graph._strict import StrictConverter

        converter, tp = self._converter, self.type
        if isinstance(converter, StrictConverter):
            self._dump, self._load = dump_hook(tp, converter), load_hook(tp, converter)
        else:
            self._load = converter.structure
            self._dump = reads_back(lambda state: converter.unstructure(state, unstructure_as=tp), self._load, tp)
        return typing.cast("Callable[[S], Any]", self._dump)

    def _find_encoder(self) -> Callable[[S], EncodedState]:
        from strata_core.graph._encoding import make_encoder

        self._encode = make_encoder(self.type, self._converter, self.dump)
        return self._encode

    @cached_property
    def _converter(self) -> Any:
        return strict_converter() if self._given is None else self._given


def _place(error: Exception) -> tuple[str, str]:
    """Return the path and the problem that an error of a converter tells."""
    from strata_core.graph._misfit import MisfitError

    if isinstance(error, MisfitError):
        return "state" + "".join(error.steps), error.problem
    if isinstance(error, RecursionError):
        return "state", "contains itself, or is nested too deeply"
    from cattrs import BaseValidationError, transform_error

    if isinstance(error, BaseValidationError):
        problem, _, path = transform_error(error, "state")[0].rpartition(" @ ")
        return path or "state", problem or str(error)
    return "state", f"{type(error).__name__}: {error}"
