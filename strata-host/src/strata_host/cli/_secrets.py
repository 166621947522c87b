"""Keeping passwords out of what the command says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

__all__ = ["hide_secrets"]

_VARIABLES: Final = ("STRATA_STORAGE", "STRATA_BLOBS", "STRATA_TARGET")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]*")


def hide_secrets(message: str, arguments: Iterable[str]) -> str:
    """Return a message without the secrets of any URL.

    Neither of those in it, nor of those that the command was given, wherever a driver repeats a part of them: also of a
    URL that was given in the wrong place, and quoted as the wrong value it is.

    Args:
        message: What is about to be shown.
        arguments: The arguments of the command.
    """
    from strata_core.urls import redact, scrub

    for given in (*arguments, *(os.environ.get(name, "") for name in _VARIABLES)):
        if "://" in given:
            message = scrub(scrub(message, given), repr(given)[1:-1])
    return _URL.sub(lambda url: redact(url[0]), message)
