"""A state that is JSON text already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from strata_core.codec._json import load_json

__all__ = ["EncodedState"]


class EncodedState(Mapping[str, Any]):
    """A state as JSON text: what the engine hands to core's own store, which then has nothing left to encode.

    As a mapping it is what the text says.

    Args:
        text: A JSON object, as `dump_json` writes it.
    """

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def __getitem__(self, key: str) -> Any:
        return self.content()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content())

    def __len__(self) -> int:
        return len(self.content())

    def content(self) -> dict[str, Any]:
        """Return a new dict of what the text says."""
        content: dict[str, Any] = load_json(self.text)
        return content
