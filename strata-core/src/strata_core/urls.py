"""URLs of stores and blob stores: what they mean, and how to show them without their secrets.

sqlite:///orders.db      a file, relative (three slashes)       ./orders.db   the same: a bare path means SQLite
sqlite:////srv/orders.db a file, absolute (four slashes)        memory://     memory of this one store
postgres://user@host/db  a server                               memory://x    memory that the process shares
file:blobs               a blob folder, relative                file:///srv/blobs   a blob folder, absolute
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from strata_core._redaction import redact, scrub
from strata_core.errors import InvalidInputError

__all__ = ["blob_url", "database_path", "folder_path", "redact", "scheme_of", "scrub", "store_url"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PATH_CHARACTERS: Final = "/!$&'()*+,;=@~"


def scheme_of(url: str) -> str | None:
    """Return the scheme, lower case; None for a bare path."""
    found = _SCHEME.match(url)
    return None if found is None else found[1].lower()


def store_url(value: object, argument: str = "url") -> str:
    """Return the URL of a store: a URL as it is, a bare path as a ``sqlite:`` URL.

    A `str` that begins with a scheme and a colon is a URL; write ``./a:b.db``, or give a `pathlib.Path`, for a file
    with such a name.

    Raises:
        InvalidInputError: It is neither a URL nor a path.
    """
    text = _text(value, argument)
    if isinstance(value, str) and scheme_of(text) is not None:
        return text
    return "sqlite:///" + quote(_bare_path(value, text, argument), safe=_PATH_CHARACTERS)


def blob_url(value: object, argument: str = "blobs") -> str:
    """Return the URL of a blob store: a URL as it is, a bare folder as a ``file:`` URL.

    Raises:
        InvalidInputError: It is neither a URL nor a path.
    """
    text = _text(value, argument)
    if isinstance(value, str) and scheme_of(text) is not None:
        return text
    path = _bare_path(value, text, argument)
    return ("file://" if path.startswith("/") else "file:") + quote(path, safe=_PATH_CHARACTERS)


def database_path(url: str, argument: str = "url") -> Path:
    """Return the file that the URL of an embedded database names: three slashes relative, four absolute.

    Percent escapes are decoded.  A URL without a file, with a host, or with a query is refused: options are given to
    `open_store` as such.

    Raises:
        InvalidInputError: The URL names no file.
    """
    rest = _after_scheme(url, argument)
    if not rest.startswith("///") or rest == "///":
        raise InvalidInputError(
            argument,
            f"{redact(url)!r} names no file: write three slashes before a relative path "
            f"({scheme_of(url)}:///orders.db) and four before an absolute one ({scheme_of(url)}:////srv/orders.db)",
        )
    return _decoded(rest[3:], url, argument)


def folder_path(url: str, argument: str = "blobs") -> Path:
    """Return the folder that a ``file:`` URL names: ``file:blobs`` relative, ``file:///srv/blobs`` absolute.

    Percent escapes are decoded; a host other than ``localhost`` and a query are refused.

    Raises:
        InvalidInputError: The URL names no folder.
    """
    rest = _after_scheme(url, argument)
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in {"", "localhost"} or not slash:
            raise InvalidInputError(
                argument,
                f"{redact(url)!r} names a host: write file:blobs for a relative folder "
                "and three slashes before an absolute one (file:///srv/blobs)",
            )
        rest = slash + path
    if not rest:
        raise InvalidInputError(argument, f"{redact(url)!r} names no folder")
    return _decoded(rest, url, argument)


def _text(value: object, argument: str) -> str:
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidInputError(argument, f"must be a URL or a path, not {type(value).__name__}")
    if not text.strip():
        raise InvalidInputError(argument, "must not be empty")
    if any(ord(character) < 0x20 or character == "\x7f" for character in text):
        raise InvalidInputError(argument, f"{redact(text)!r} has a control character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(argument, "must not contain a lone surrogate") from None
    return text


def _bare_path(value: object, text: str, argument: str) -> str:
    # Taken for a file, a broken URL would put its password into a file name, and into every message about that.
    if isinstance(value, str) and ("://" in text or redact(text) != text):
        raise InvalidInputError(
            argument, f"{redact(text)!r} looks like a URL without a proper scheme; a pathlib.Path is always a path"
        )
    return text


def _after_scheme(url: str, argument: str) -> str:
    found = _SCHEME.match(_text(url, argument))
    if found is None:
        raise InvalidInputError(argument, f"{redact(url)!r} has no scheme")
    return url[found.end() :]


def _decoded(path: str, url: str, argument: str) -> Path:
    if "?" in path or "#" in path:
        raise InvalidInputError(
            argument, f"{redact(url)!r} has a query or fragment; write %3F for '?' and %23 for '#' in a file name"
        )
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInputError(argument, f"{redact(url)!r} has an escape that is not UTF-8") from None
    if "\0" in decoded:
        raise InvalidInputError(argument, f"{redact(url)!r} has a NUL")
    return Path(decoded)
