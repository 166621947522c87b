"""How a thread and a blob are named outside a database."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from strata_core._validation import check_thread_id
from strata_core.errors import InvalidInputError

__all__ = ["blob_file", "check_content", "digest_of_file", "is_thread_folder", "thread_folder", "thread_of_folder"]

_LONGEST_IN_HEX: Final = 127
"""UTF-8 bytes of the longest thread ID that is spelled out: twice as many hex digits still fit into one file name."""
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_FILE: Final = re.compile(r"[0-9a-f]{64}")
_HASHED: Final = re.compile(r"sha256-[0-9a-f]{64}")


def thread_folder(thread_id: object) -> str:
    """Return the one folder name, or key prefix, of a thread's blobs.

    The hex of the ID's UTF-8 bytes; for an ID over 127 bytes, ``sha256-`` and the hex digest of those bytes.  Two IDs
    never share a name, and nothing in an ID reaches a file system.

    Raises:
        InvalidInputError: The ID breaks a rule.
    """
    encoded = check_thread_id(thread_id).encode()
    if len(encoded) <= _LONGEST_IN_HEX:
        return encoded.hex()
    return f"sha256-{hashlib.sha256(encoded).hexdigest()}"


def blob_file(digest: object) -> str:
    """Return the file name of a blob: the 64 hex digits of its digest.

    Raises:
        InvalidInputError: The digest is malformed.
    """
    if type(digest) is not str:
        raise InvalidInputError("digest", f"must be a str, not {type(digest).__name__}")
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise InvalidInputError("digest", f"must be 'sha256:' and 64 lower-case hex digits, not {digest[:100]!r}")
    return found[1]


def thread_of_folder(folder: str) -> str | None:
    """Return the thread whose folder this is; None for a name that is hashed, which nobody can turn back.

    Raises:
        ValueError: No thread's folder has this name.
    """
    if _HASHED.fullmatch(folder) is not None:
        return None
    thread_id = bytes.fromhex(folder).decode()
    if thread_folder(thread_id) != folder:  # capitals, white space, an ID that would be hashed
        message = f"{folder!r} is no thread's folder"
        raise ValueError(message)
    return thread_id


def is_thread_folder(folder: str) -> bool:
    """Tell whether a thread's folder can have this name."""
    try:
        thread_of_folder(folder)
    except ValueError:
        return False
    return True


def digest_of_file(name: str) -> str | None:
    """Return the digest of the blob that has this file name; None when no blob has."""
    return None if _FILE.fullmatch(name) is None else f"sha256:{name}"


def check_content(content: object) -> bytes:
    """Return `content` if it is `bytes`; anything that could change while it is written is refused.

    Raises:
        InvalidInputError: It is something else.
    """
    if not isinstance(content, bytes):
        raise InvalidInputError("content", f"must be bytes, not {type(content).__name__}")
    return content
