"""Texts of the engine that must fit into metadata whatever they contain."""

from __future__ import annotations

from typing import Final

from strata_core._validation import MAX_VALUE_BYTES

__all__ = ["describe", "fit"]

_ELLIPSIS: Final = "…"


def fit(text: str, limit: int = MAX_VALUE_BYTES) -> str:
    """Return text that any store takes as a metadata value: NUL and lone surrogates escaped, cut to `limit` bytes."""
    text = text[: limit + 1].replace("\0", "\\x00")
    content = text.encode("utf-8", "backslashreplace")
    if len(content) > limit:
        content = content[: limit - len(_ELLIPSIS.encode())]
        return content.decode("utf-8", "ignore") + _ELLIPSIS
    return content.decode()


def describe(error: BaseException) -> str:
    """Return an error's type and text, whatever its own ``__str__`` does."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # an error that cannot even be printed must not hide that the node failed
        return f"{name}: <its text cannot be read>"
    return f"{name}: {text}" if text else name
