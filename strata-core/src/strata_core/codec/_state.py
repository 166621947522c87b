"""A state as stored: whole, as a delta, and with large values as references to blobs.

A state is read once, into a `Snapshot`, at the moment of the call; bodies are composed from that.  So a save that was
refused because another writer came first can be composed anew without looking at the caller's objects again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import attrs

from strata_core.codec._json import MAX_NESTING, dump_json, quote
from strata_core.codec._record import PLAIN
from strata_core.errors import InvalidInputError

__all__ = ["Body", "Snapshot", "Value", "compose_delta", "compose_whole", "digest_of", "plain_body", "take_snapshot"]

KEPT_TEXT: Final = 2048
"""Longer texts are remembered by a hash: what a cache costs must not grow with the states."""
KEPT_OBJECT: Final = 256
"""From this length on a str is worth comparing by identity before encoding it again."""


@attrs.define(eq=False)
class Value:
    """One top-level value of a state.

    Attributes:
        text: Its JSON text; None once it is only remembered and long.
        source: The str object it was made from, when that is long: the very same object need not be encoded again.
        mark: Tells whether two texts are equal: the text itself, or a hash of a long one.
        digest: Of the blob, when the value is offloaded.
    """

    text: bytes | None
    source: str | None
    mark: bytes
    digest: str | None

    def json_text(self) -> bytes:
        """Return the JSON text, made again from the immutable source if need be."""
        if self.text is not None:
            return self.text
        return dump_json(self.source)


Snapshot = dict[str, Value]


@attrs.define(eq=False)
class Body:
    """A state as stored.

    Attributes:
        version: The lowest schema_version that covers it.
        is_whole: Whether it stands alone.
        text: The JSON text of the body.
        digests: The blobs that the body itself names, with their values.
    """

    version: str
    is_whole: bool
    text: bytes
    digests: Mapping[str, Value]


def digest_of(content: bytes) -> str:
    """Return the name of a blob: ``sha256:`` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def take_snapshot(state: object, threshold: int | None, before: Snapshot | None) -> Snapshot:
    """Read a state, once.

    Args:
        state: The state; a dict with str keys.
        threshold: A value whose text has at least this many bytes is offloaded; None for none.
        before: What is remembered of the thread's previous state; its values are used again where they are the same
            object.

    Raises:
        InvalidInputError: The state has no exact JSON form; names the path.
    """
    if type(state) is not dict:
        raise InvalidInputError("frozen_state", f"must be a dict (a JSON object), not {type(state).__name__}")
    snapshot: Snapshot = {}
    for key, item in state.items():
        if type(key) is not str:
            raise InvalidInputError("state", f"key {key!r} is a {type(key).__name__}, not a str")
        if type(item) is str and len(item) >= KEPT_OBJECT:
            old = before.get(key) if before is not None else None
            if old is not None and old.source is item:
                snapshot[key] = old
                continue
            source = item
        else:
            source = None
        text = dump_json(item, f"state.{key}", nesting=MAX_NESTING - 1)
        if threshold is not None and len(text) >= threshold:
            digest = digest_of(text)
            snapshot[key] = Value(text, source, digest.encode(), digest)
        elif len(text) <= KEPT_TEXT:
            snapshot[key] = Value(text, source, text, None)
        else:
            snapshot[key] = Value(text, source, hashlib.blake2b(text, digest_size=32).digest(), None)
    _join(snapshot)  # a key with a lone surrogate is refused here, before anything is written
    return snapshot


def plain_body(state: object) -> Body:
    """Return the body of a whole row without references; what `compose_whole` gives without a threshold.

    Raises:
        InvalidInputError: As `take_snapshot`.
    """
    if type(state) is not dict:
        raise InvalidInputError("frozen_state", f"must be a dict (a JSON object), not {type(state).__name__}")
    return Body(PLAIN, True, dump_json(state), {})


def compose_whole(snapshot: Snapshot) -> Body:
    """Return the body of a whole row."""
    text = _join(snapshot)
    digests = {value.digest: value for value in snapshot.values() if value.digest is not None}
    if not digests:
        return Body(PLAIN, True, text, digests)
    return Body("1.9.0", True, b'{"whole":' + text + b',"blobs":' + _references(snapshot) + b"}", digests)


def compose_delta(snapshot: Snapshot, base: Snapshot, sequence: int) -> Body | None:
    """Return the body of a row that builds on the row before it; None when a delta cannot express it.

    Args:
        snapshot: The state to store.
        base: The state of the row before.
        sequence: The sequence of the row before.
    """
    order = [key for key in base if key in snapshot]
    order += [key for key in snapshot if key not in base]
    if order != list(snapshot):
        return None
    changed = {
        key: value
        for key, value in snapshot.items()
        if (old := base.get(key)) is not value and (old is None or old.mark != value.mark)
    }
    unset = b",".join([quote(key).encode() for key in base if key not in snapshot])
    text = b'{"base":%d,"set":%b,"unset":[%b]' % (sequence, _join(changed), unset)
    digests = {value.digest: value for value in changed.values() if value.digest is not None}
    if not digests:
        return Body("1.8.0", False, text + b"}", digests)
    return Body("1.9.0", False, text + b',"blobs":' + _references(changed) + b"}", digests)


def _join(values: Snapshot) -> bytes:
    try:
        return b"{%b}" % b",".join(
            [
                b"%b:%b" % (quote(key).encode(), b"null" if value.digest is not None else value.json_text())
                for key, value in values.items()
            ]
        )
    except UnicodeEncodeError:
        raise InvalidInputError("state", "a key contains a lone surrogate") from None


def _references(values: Snapshot) -> bytes:
    references = [f'{quote(key)}:"{value.digest}"' for key, value in values.items() if value.digest is not None]
    return "{{{}}}".format(",".join(references)).encode()
