"""Keeping passwords out of what the command says."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

__all__ = ["redact", "remember"]

_MASK: Final = "***"
# From the first colon after the user to the last @ of the word: a password may hold any of / : @ ? # unescaped.
_USERINFO: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):\S*@")
_PARAMETER: Final = re.compile(
    r"([?&;][\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|key)[\w.-]*=)[^&;#\s'\"]*", re.IGNORECASE
)
_IN_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^:/@]*:(.*)@", re.DOTALL)

_known: set[str] = set()


def remember(url: str | None) -> None:
    """Note the password of a URL in use, so that `redact` finds it also where a driver repeats it on its own."""
    if url is None or (found := _IN_URL.match(url)) is None:
        return
    password = found.group(1)
    _known.update(secret for secret in (password, unquote(password)) if secret)


def redact(text: str) -> str:
    """Return `text` without the passwords of the URLs in it, and without those that were remembered."""
    for secret in sorted(_known, key=len, reverse=True):
        # Replacing every "a" because the password is "a" would tell the password and nothing else.
        pattern = re.escape(secret) if len(secret) > 3 else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(pattern, _MASK, text)
    return _PARAMETER.sub(rf"\1{_MASK}", _USERINFO.sub(rf"\1:{_MASK}@", text))
