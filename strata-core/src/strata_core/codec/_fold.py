"""Stored bodies back to whole states, verified."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from strata_core.codec._json import copy_json, load_json
from strata_core.codec._versions import MalformedRecordError, check_version
from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.rows import Row

__all__ = ["Folded", "fold_rows", "row_references"]

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


@attrs.define(eq=False)
class Folded:
    """A row with its whole state.

    Attributes:
        row: The stored row.
        state: The whole state; an offloaded key stands there as None.
        references: The digests of the offloaded keys.
    """

    row: Row
    state: dict[str, Any]
    references: dict[str, str]


def fold_rows(thread_id: str, rows: Sequence[Row], first: int) -> Iterator[Folded]:
    """Yield the rows from sequence `first` on, each with its whole state; no two share a container.

    Raises:
        CorruptCheckpointError: A body is malformed, or a row that another builds on is missing.
        SchemaVersionError: A row is of a newer format.
    """
    state: dict[str, Any] | None = None
    references: dict[str, str] = {}
    previous: Row | None = None
    for row in rows:
        try:
            _check_place(row, previous)
            body, is_whole = _body(row)
            if is_whole:
                state, references = _whole(body, row)
            elif state is None:
                raise MalformedRecordError("builds on a row that is missing")
            else:
                state, references = _merged(body, state, references, row)
        except SchemaVersionError as error:
            raise _at(row, thread_id, error) from None
        except ValueError as error:
            raise CorruptCheckpointError(thread_id, row.sequence, str(error)) from None
        if row.sequence >= first:
            yield Folded(row, copy_json(state), dict(references))
        previous = row


def row_references(thread_id: str, rows: Sequence[Row]) -> set[str]:
    """Return the digests that stand in these rows themselves, whatever they build on.

    Raises:
        CorruptCheckpointError: A body is malformed.
        SchemaVersionError: A row is of a newer format.
    """
    digests: set[str] = set()
    for row in rows:
        try:
            body, is_whole = _body(row)
            if row.version.startswith("1.9."):
                state = _dict(body.get("whole" if is_whole else "set"), "state")
                digests.update(_digests(body.get("blobs", {}), state).values())
        except SchemaVersionError as error:
            raise _at(row, thread_id, error) from None
        except ValueError as error:
            raise CorruptCheckpointError(thread_id, row.sequence, str(error)) from None
    return digests


def _at(row: Row, thread_id: str, error: SchemaVersionError) -> SchemaVersionError:
    return SchemaVersionError(
        f"checkpoint {thread_id!r} #{row.sequence}: {error}", found=error.found, supported=error.supported
    )


def _check_place(row: Row, previous: Row | None) -> None:
    if previous is None:
        if row.whole_at != row.sequence:
            raise MalformedRecordError("builds on a row that is missing")
    elif row.sequence != previous.sequence + 1:
        raise MalformedRecordError(f"does not follow #{previous.sequence}: a row between them is missing")
    elif row.whole_at not in (row.sequence, previous.whole_at):
        raise MalformedRecordError("builds on another row than the one before it")


def _body(row: Row) -> tuple[dict[str, Any], bool]:
    check_version(row.version)
    minor = int(row.version.split(".")[1])
    try:
        body = load_json(row.body)
    except ValueError as error:
        raise MalformedRecordError(f"has a state that is not JSON: {error}") from None
    if type(body) is not dict:
        raise MalformedRecordError("has a state that is no JSON object")
    is_whole = minor <= 7 or (minor == 9 and "whole" in body)
    if is_whole != (row.whole_at == row.sequence):
        raise MalformedRecordError("is whole in one place and a delta in another")
    return body, is_whole


def _whole(body: dict[str, Any], row: Row) -> tuple[dict[str, Any], dict[str, str]]:
    if row.version.startswith("1.9."):
        _members(body, {"whole", "blobs"}, set())
        return _dict(body["whole"], "whole"), _digests(body["blobs"], body["whole"])
    return body, {}


def _merged(
    body: dict[str, Any], state: dict[str, Any], references: dict[str, str], row: Row
) -> tuple[dict[str, Any], dict[str, str]]:
    _members(body, {"base", "set", "unset"}, {"blobs"} if row.version.startswith("1.9.") else set())
    if type(body["base"]) is not int or body["base"] != row.sequence - 1:
        raise MalformedRecordError(f"names another base than #{row.sequence - 1}")
    changed = _dict(body["set"], "set")
    unset = body["unset"]
    if type(unset) is not list or not all(type(key) is str and key in state and key not in changed for key in unset):
        raise MalformedRecordError("has an unset that does not fit its base")
    gone = set(unset)
    merged = {key: value for key, value in state.items() if key not in gone} | changed
    kept = {key: digest for key, digest in references.items() if key not in gone and key not in changed}
    return merged, kept | _digests(body.get("blobs", {}), changed)


def _members(body: dict[str, Any], required: set[str], optional: set[str]) -> None:
    if not required <= body.keys() <= required | optional:
        raise MalformedRecordError("has an envelope with missing or unknown members")


def _dict(value: object, name: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise MalformedRecordError(f"has an envelope whose {name} is no JSON object")
    return value


def _digests(value: object, state: dict[str, Any]) -> dict[str, str]:
    digests = _dict(value, "blobs")
    for key, digest in digests.items():
        if type(digest) is not str or _DIGEST.fullmatch(digest) is None:
            raise MalformedRecordError(f"has a blob reference at {key!r} that is no sha256 hash")
        if key not in state or state[key] is not None:
            raise MalformedRecordError(f"has a blob reference at {key!r} where the state has no place for it")
    return digests
