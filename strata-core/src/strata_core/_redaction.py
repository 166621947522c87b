"""Hides secrets in URLs that are shown: also in URLs that are broken, where no parser can be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

__all__ = ["redact", "scrub"]

HIDDEN: Final = "***"
_SECRET_KEY: Final = re.compile(
    r"pass(word|wd|phrase|code)?|pwd|secret|token|credential|signature|api_?key|access_?key|private_?key|auth",
    re.IGNORECASE,
)
_PARAMETER: Final = re.compile(r"([^=?&;#\s/:@]+)=")
_SCHEME: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY_END: Final = re.compile(r"[/?#]")
_HOSTS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:,]*)(:\d*)?(,(\[[0-9A-Fa-f:.%]*\]|[^:,]*)(:\d*)?)*")
_PATH_SCHEMES: Final = frozenset({"sqlite", "file", "memory"})


def redact(url: str) -> str:
    """Return the URL with `***` in place of everything that may be a secret, for messages, logs and reprs.

    Hidden are the password of ``user:password@``, all of a ``user@`` without a colon (it may be a token), and the
    value of every parameter that is named like a secret (``password=``, ``sslpassword=``, ``api_key=``), however it is
    escaped.  A string that is no well-formed URL is treated alike, and rather loses too much than too little.
    """
    start, end, secret_from = _userinfo(url)
    shown = url[:start] + (url[start:secret_from] + HIDDEN if secret_from < end else url[start:end])
    rest = url[end:]
    at = 0
    for first, last in _secret_values(rest):
        shown += rest[at:first] + HIDDEN
        at = last
    return shown + rest[at:]


def scrub(text: str, url: str) -> str:
    """Return `text` with the secrets of `url`, as written or unescaped, replaced by `***`.

    For the message of a driver, which may quote what it was given.  Where it quotes the URL, what `redact` shows stays
    readable: a password may be a word of it, as in ``postgresql://postgres:postgres@host/postgres``.
    """
    _, end, secret_from = _userinfo(url)
    found = {url[secret_from:end]}
    rest = url[end:]
    found.update(rest[first:last] for first, last in _secret_values(rest))
    found.update([part for secret in found for part in (*secret.split(":"), _AUTHORITY_END.split(secret)[0])])
    found.update([_unescaped(secret) for secret in found], [unquote(secret) for secret in found])
    shown = redact(url)
    scheme = _SCHEME.match(url)
    kept = [re.escape(part) for part in (shown, scheme and f"{scheme[1]}://") if part]
    secrets = [secret for secret in sorted(found, key=len, reverse=True) if secret and secret != HIDDEN]
    pieces = re.split(f"({'|'.join(kept)})", text.replace(url, shown)) if kept else [text]
    for place in range(0, len(pieces), 2):
        for secret in secrets:
            pieces[place] = pieces[place].replace(secret, HIDDEN)
    return "".join(pieces)


def _userinfo(url: str) -> tuple[int, int, int]:
    """Return where the userinfo starts and ends, and where in it the secret begins (its end: there is none)."""
    scheme = _SCHEME.match(url)
    slashes = url.find("://") + 1 if "://" in url else 0 if url.startswith("//") else -1
    start = slashes + 2 if slashes >= 0 else scheme.end() if scheme is not None else 0
    end = url.rfind("@")  # the last: an unescaped password may contain any number of them, and slashes too
    inside = url[start : max(start, end)]
    is_path = scheme is None and slashes < 0
    if scheme is not None and scheme[1].lower() in _PATH_SCHEMES:
        is_path = slashes < 0 or url.startswith("/", start)
    if is_path and ":" not in inside:
        return 0, 0, 0
    if end < start:
        authority = url[start:] if slashes < 0 else _AUTHORITY_END.split(url[start:], maxsplit=1)[0]
        if is_path or _HOSTS.fullmatch(authority) is not None:
            return 0, 0, 0
        return start, len(url), start + authority.find(":") + 1  # no host behind the password
    if scheme is not None and slashes < 0:
        return start, end, start  # "user:password@host" reads like a scheme; what follows it is the password
    colon = inside.find(":")
    return start, end, start if colon < 0 else start + colon + 1


def _secret_values(text: str) -> Iterator[tuple[int, int]]:
    """Find the values of parameters that are named like secrets; a value ends at ``&`` or at the end."""
    at = 0
    while (found := _PARAMETER.search(text, at)) is not None:
        at = found.end()
        if _SECRET_KEY.search(_unescaped(found[1])) is not None:
            last = text.find("&", at)
            last = len(text) if last < 0 else last
            yield at, last
            at = last


def _unescaped(text: str) -> str:
    for _ in range(3):  # escaped twice by somebody who meant well
        text = unquote(text)
    return text
