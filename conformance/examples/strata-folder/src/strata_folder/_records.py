"""Heads and rows as the content of files.

A file is a checksum, a line of JSON and, for a row, its envelope and body byte for byte.  What has the right checksum
was written by this module, so nothing else needs to be checked when it is read.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import attrs

from strata_core.errors import CorruptCheckpointError
from strata_core.rows import Head, NewRow, Row

__all__ = ["head_content", "read_head", "read_row", "row_content"]


def head_content(head: Head) -> bytes:
    """Return the content of a head file."""
    fields = attrs.asdict(head, filter=attrs.filters.exclude("now", "envelope", "metadata"))
    fields |= {"write_ids": head.write_ids.hex(), "lease_id": head.lease_id.hex(), "metadata": dict(head.metadata)}
    return _sealed(fields)


def read_head(path: Path, now: int) -> Head | None:
    """Return the head in a file; None when there is no such file.

    Raises:
        CorruptCheckpointError: The file is damaged.
    """
    try:
        fields, _ = _unsealed(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CorruptCheckpointError(_thread_of(path), None, f"cannot be read: {path} {error}") from None
    for name in ("write_ids", "lease_id"):
        fields[name] = bytes.fromhex(fields[name])
    return Head(**fields, now=now)


def row_content(row: NewRow, sequence: int, whole_at: int, write_id: bytes) -> bytes:
    """Return the content of a row file."""
    fields = {"sequence": sequence, "whole_at": whole_at, "write_id": write_id.hex(), "version": row.version}
    return _sealed(fields | {"envelope": len(row.envelope)}, row.envelope + row.body)


def read_row(path: Path, thread_id: str, sequence: int) -> Row:
    """Return the row in a file.

    Raises:
        CorruptCheckpointError: The file is missing or damaged.
    """
    try:
        fields, data = _unsealed(path.read_bytes())
    except FileNotFoundError:
        raise CorruptCheckpointError(thread_id, sequence, f"cannot be read: {path} is missing") from None
    except ValueError as error:
        raise CorruptCheckpointError(thread_id, sequence, f"cannot be read: {path} {error}") from None
    size = fields.pop("envelope")
    write_id = bytes.fromhex(fields.pop("write_id"))
    return Row(**fields, write_id=write_id, envelope=data[:size], body=data[size:])


def _sealed(fields: dict[str, Any], data: bytes = b"") -> bytes:
    rest = json.dumps(fields).encode() + b"\n" + data
    return b"%08x\n" % zlib.crc32(rest) + rest


def _unsealed(content: bytes) -> tuple[dict[str, Any], bytes]:
    seal, _, rest = content.partition(b"\n")
    if seal != b"%08x" % zlib.crc32(rest):
        raise ValueError("has a wrong checksum")
    line, _, data = rest.partition(b"\n")
    return json.loads(line), data


def _thread_of(path: Path) -> str:
    name = path.parent.name
    return name if name.startswith("sha256-") else bytes.fromhex(name).decode()
