"""What `open_store` checks about its arguments, at the call, where a mistake is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

from strata_core.errors import InvalidInputError
from strata_core.options import Offload, Setup
from strata_core.ports import BlobStore

__all__ = [
    "BLOB_METHODS",
    "PORT_METHODS",
    "QUERY_METHODS",
    "RETENTION_METHODS",
    "STORE_METHODS",
    "flag_argument",
    "names_argument",
    "offload_argument",
    "optional_argument",
    "plugins_argument",
    "setup_argument",
]

BLOB_METHODS: Final = ("put", "get", "delete_thread")
STORE_METHODS: Final = (
    "save",
    "save_if_latest",
    "save_under_lease",
    "load",
    "acquire_lease",
    "renew_lease",
    "release_lease",
    "live_lease",
)
QUERY_METHODS: Final = ("list_threads", "get_log")
RETENTION_METHODS: Final = ("purge",)
PORT_METHODS: Final = (*STORE_METHODS, *QUERY_METHODS, *RETENTION_METHODS, "setup", "capabilities")
"""What each port is made of; the last, what an open store has in all."""
"""What makes an object a blob store."""


def optional_argument(value: Any, kind: type[Any], argument: str) -> Any:
    """Return an instance of `kind`, or None."""
    if value is not None and not isinstance(value, kind):
        raise InvalidInputError(argument, f"must be of type {kind.__name__}, or None, not {type(value).__name__}")
    return value


def offload_argument(value: object) -> Offload | None:
    """Return how to offload; `blobs` is a blob store, a URL or a folder."""
    offload: Offload | None = optional_argument(value, Offload, "offload")
    if offload is not None and offload.blobs is not None:
        blobs: object = offload.blobs
        if isinstance(blobs, str | os.PathLike):
            from strata_core.urls import blob_url

            blob_url(blobs, "offload.blobs")
        elif not all(hasattr(blobs, name) for name in BLOB_METHODS):
            raise InvalidInputError(
                "offload.blobs", f"must be a {BlobStore.__name__}, a URL or a folder, not {type(blobs).__name__}"
            )
    return offload


def flag_argument(value: object, argument: str) -> bool:
    """Return True or False; nothing else is true or false here."""
    if not isinstance(value, bool):
        raise InvalidInputError(argument, f"must be True or False, not {value!r}")
    return value


def setup_argument(value: object) -> Setup:
    """Return a `Setup`, given as such or as its text."""
    for setup in Setup:
        if isinstance(value, str) and value == setup:
            return setup
    raise InvalidInputError("setup", f"must be {' or '.join(repr(setup.value) for setup in Setup)}, not {value!r}")


def names_argument(value: object) -> tuple[str, ...]:
    """Return names of wrappers; one string is not taken apart into letters."""
    names = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if names is None or not all(type(name) is str for name in names):
        raise InvalidInputError("wrappers", "must be a sequence of wrapper names, such as ['audit']")
    return names


def plugins_argument(value: object) -> tuple[object, ...]:
    """Return modules or objects with hooks."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError("plugins", f"must be a sequence of modules or objects, not {type(value).__name__}")
    return tuple(value)
