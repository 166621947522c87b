"""What a URL says: which bucket, where in it, and the options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from strata_blobs_s3._options import S3Options
from strata_core.errors import InvalidInputError
from strata_core.urls import redact

__all__ = ["check_bucket", "check_prefix", "parse_url"]

_URL: Final = re.compile(r"s3://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE)
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]", re.ASCII)
_LONGEST_PREFIX: Final = 700
"""UTF-8 bytes: with the longest folder and a blob's name behind it, a key stays within the 1,024 that S3 allows."""
_SECRETS: Final = frozenset({"aws_access_key_id", "aws_secret_access_key", "aws_session_token"})


def check_bucket(value: object, argument: str = "bucket") -> str:
    """Return the name of a bucket, or the alias of an access point.

    Raises:
        InvalidInputError: No bucket can have this name.
    """
    if not isinstance(value, str) or _BUCKET.fullmatch(value) is None:
        shown = redact(value) if isinstance(value, str) else type(value).__name__  # perhaps a URL, keys and all
        raise InvalidInputError(
            argument, f"must name a bucket: 3 to 255 letters, digits, dots, dashes and underscores, not {shown!r}"
        )
    return value


def check_prefix(value: object, argument: str = "prefix") -> str:
    """Return a prefix without slashes around it, as all keys begin; empty for none.

    Raises:
        InvalidInputError: It is too long, or has an empty part or a control character.
    """
    if not isinstance(value, str):
        raise InvalidInputError(argument, f"must be a str, not {type(value).__name__}")
    prefix = value.strip("/")
    if "//" in prefix or any(part in {".", ".."} for part in prefix.split("/")):
        raise InvalidInputError(argument, f"{value!r} has a part that is empty or made of dots")
    if any(ord(character) < 0x20 or character in "\x7f\ufffe\uffff" for character in prefix):
        # A delete names its keys in XML, which knows no such characters: blobs could be put, and never deleted.
        raise InvalidInputError(argument, f"{value!r} has a control character")
    try:
        size = len(prefix.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(argument, "must not contain a lone surrogate") from None
    if size > _LONGEST_PREFIX:
        raise InvalidInputError(argument, f"has {size} UTF-8 bytes, at most {_LONGEST_PREFIX} are allowed")
    return prefix


def parse_url(url: str) -> tuple[str, str, S3Options]:
    """Return the bucket, the prefix and the options of ``s3://bucket/prefix?region=…``.

    Raises:
        InvalidInputError: It names no bucket, or says something that is no option.
    """
    shown = redact(url)
    found = _URL.fullmatch(url)
    if found is None:
        raise InvalidInputError("url", f"{shown!r} must be s3://bucket/prefix, options after a '?', no '#'")
    bucket, path, query = found[1], found[2], found[3]
    if "@" in bucket:
        raise InvalidInputError("url", f"{shown!r} has a user: credentials come from boto3's own chain, not from a URL")
    if ":" in bucket:
        raise InvalidInputError(
            "url", f"{shown!r} has a host and port in the place of the bucket: write s3://bucket?endpoint_url=http://…"
        )
    try:
        prefix = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInputError("url", f"{shown!r} has an escape that is not UTF-8") from None
    if _BUCKET.fullmatch(bucket) is None:
        raise InvalidInputError("url", f"{shown!r} names no bucket: write s3://bucket/prefix")
    return bucket, check_prefix(prefix, "url"), _options(query or "", shown)


def _options(query: str, shown: str) -> S3Options:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:
        raise InvalidInputError("url", f"{shown!r} has a query that is not name=value&name=value") from None
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in _SECRETS:
            raise InvalidInputError(
                "url", f"{shown!r} has {name}: credentials come from boto3's own chain, never from a URL; see profile="
            )
        if name not in _READERS:
            near = get_close_matches(name, _READERS, 1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise InvalidInputError("url", f"{shown!r}: there is no option {name!r}{guess}; {', '.join(_READERS)}")
        if name in given:
            raise InvalidInputError("url", f"{shown!r} says {name} twice")
        given[name] = _read(name, text, shown)
    try:
        return S3Options(**given)
    except InvalidInputError as error:
        raise InvalidInputError("url", f"{shown!r}: {error.argument} {error.problem}") from None


def _read(name: str, text: str, shown: str) -> Any:
    try:
        return _READERS[name](text)
    except (ValueError, OverflowError):
        raise InvalidInputError("url", f"{shown!r}: {name} must be a number, not {text!r}") from None


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text))


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "endpoint_url": str,
    "region": str,
    "profile": str,
    "addressing_style": str,
    "request_checksum_calculation": str,
    "connect_timeout": _seconds,
    "read_timeout": _seconds,
    "max_attempts": int,
    "max_connections": int,
    "server_side_encryption": str,
    "kms_key_id": str,
}
