"""Classes of pydantic: saved by their fields under their aliases, and made again by their own strict validation."""

from __future__ import annotations

from typing import Any

from strata_core.graph._misfit import MisfitError
from strata_core.graph._rebuilding import rebuild_check
from strata_core.graph._shapes import Field, Kind, Shape, UnsupportedTypeError, type_name

__all__ = ["extras_of", "model_shape"]


def extras_of(value: Any) -> dict[str, Any]:
    """Return what an instance of an open model holds beside its fields."""
    return value.__pydantic_extra__ or {}


def model_shape(cls: Any) -> Shape:
    """Take a model apart.

    Raises:
        UnsupportedTypeError: It holds more than its fields, or leaves some of them out of its JSON.
    """
    from pydantic import RootModel, ValidationError

    name = type_name(cls)
    if issubclass(cls, RootModel):
        raise UnsupportedTypeError(f"{name} is a RootModel; declare the type in it instead")
    if cls.__private_attributes__:
        private = next(iter(cls.__private_attributes__))
        raise UnsupportedTypeError(f"{name} has the private attribute {private!r}, which would not be saved")
    if getattr(cls, "__pydantic_generic_metadata__", {}).get("parameters"):
        raise UnsupportedTypeError(f"{name} is generic; write it with its arguments")
    try:
        cls.model_rebuild()
    except Exception as error:  # noqa: BLE001  # annotations run whatever code they hold
        raise UnsupportedTypeError(f"the annotations of {name} cannot be read: {error}") from None
    fields, inputs = [], {}
    for field_name, info in cls.model_fields.items():
        if info.exclude:
            raise UnsupportedTypeError(f"the field {field_name!r} of {name} is excluded from what is saved")
        key = info.serialization_alias or info.alias or field_name
        fields.append(Field(field_name, key, info.annotation, info.is_required()))
        inputs[field_name] = _input_name(cls, field_name, info)

    def make(values: dict[str, Any]) -> Any:
        try:
            return cls.model_validate({inputs.get(key, key): item for key, item in values.items()}, strict=True)
        except ValidationError as error:
            # Its own text would show the values.
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            misfit = MisfitError(f"{cls.__qualname__} refuses it: {first['msg']}")
            for step in reversed(first["loc"]):
                misfit.under(f"[{step}]" if isinstance(step, int) else f".{step}")
            raise misfit from None

    found = tuple(fields)
    is_open = cls.model_config.get("extra") == "allow"
    check = rebuild_check(cls, found, make, extras_of if is_open else None)
    return Shape(Kind.CLASS, cls, fields=found, make=make, check=check, is_open=is_open)


def _input_name(cls: Any, name: str, info: Any) -> str:
    """Return under which name validation takes a field."""
    from pydantic import AliasChoices

    config = cls.model_config
    alias = info.validation_alias
    if alias is None or config.get("populate_by_name") or config.get("validate_by_name"):
        return name
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    if isinstance(alias, str):
        return alias
    raise UnsupportedTypeError(f"the field {name!r} of {type_name(cls)} is taken from inside another value")
