"""From a store's URL to a path."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from strata_core.errors import InvalidInputError

__all__ = ["path_from_url"]


def path_from_url(url: str) -> str:
    """Return the path that a URL names: ``sqlite:///relative.db`` or ``sqlite:////absolute.db``, percent-decoded.

    Raises:
        InvalidInputError: It has another scheme, a host, options or a fragment, or no path.
    """
    scheme, host, rest, query, fragment = urlsplit(url)
    if scheme != "sqlite":
        raise InvalidInputError("url", f"must begin with sqlite://, not {scheme!r}")
    if host:
        # Not quoted in full: what stands before an @ could be a password.
        raise InvalidInputError(
            "url",
            f"names a host, {host.rpartition('@')[2]!r}, and a file has none; write three slashes before a relative "
            "path (sqlite:///orders.db) and four before an absolute one",
        )
    if query:
        option = query.split("&", maxsplit=1)[0].split("=", maxsplit=1)[0]
        raise InvalidInputError(
            "url", f"has the option {option!r}, and this scheme knows none in a URL; pass options=SqliteOptions(...)"
        )
    if fragment or url.endswith("#"):
        raise InvalidInputError("url", "has a '#'; write %23 for one that belongs to the path")
    path = unquote(rest.removeprefix("/"), errors="surrogateescape")
    if not path:
        raise InvalidInputError("url", "names no file; write for example sqlite:///orders.db")
    return path
