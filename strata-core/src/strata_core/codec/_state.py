"""A state as stored: whole, as a delta, and with large values as references to blobs.

A state is read once, into a `Snapshot`, at the moment of the call; bodies are composed from that.  So a save that was
refused because another writer came first can be composed anew without looking at the caller's objects again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import Final

import attrs

from strata_core._validation import shown
from strata_core.codec._encoded import EncodedState
from strata_core.codec._json import MAX_NESTING, dump_json, quote
from strata_core.codec._versions import DELTA, PLAIN, WITH_BLOBS
from strata_core.errors import InvalidInputError

__all__ = [
    "Body",
    "Snapshot",
    "Value",
    "compose_delta",
    "compose_whole",
    "digest_of",
    "plain_text",
    "take_snapshot",
]

KEPT_TEXT: Final = 2048
"""Longer texts are remembered by a hash: what a cache costs must not grow with the states."""
_TEXT: Final = frozenset({str})
_IMMUTABLE: Final = frozenset({str, int, float, bool, type(None)})
_NO_SOURCE: Final = object()
_VALUE_COST: Final = 300
"""Bytes, roughly, of the objects around a remembered value."""


@attrs.define(eq=False)
class Value:
    """One top-level value of a state.

    Attributes:
        member: It with its key as JSON text, ``"key":value``, with null for an offloaded value; None once it is only
            remembered and long.
        mark: Equal for equal values of a key: `member` itself, or a hash of a long text.
        source: The immutable object that it was made from: the very same one need not be encoded again.
        cost: What remembering it takes, in bytes, roughly.
        content: The bytes of the blob, while it may have to be sent.
        digest: Of the blob, when the value is offloaded.
    """

    member: bytes | None
    mark: bytes
    source: object
    cost: int
    content: bytes | None = None
    digest: str | None = None

    @property
    def is_long(self) -> bool:
        """Whether there is something that need not be remembered."""
        return self.content is not None or self.mark is not self.member

    def blob(self) -> bytes:
        """Return the bytes of the blob, made again from the immutable source if need be."""
        return self.content if self.content is not None else dump_json(self.source)


@attrs.define(eq=False)
class Snapshot:
    """A state as it was at one moment.

    Attributes:
        values: Its top-level values, in the state's own order.
        sources: Their sources, in that order.
        cost: What remembering them takes, in bytes, roughly.
        has_long: Whether there is something that need not be remembered.
    """

    values: dict[str, Value]
    sources: list[object]
    cost: int
    has_long: bool

    def shrink(self) -> None:
        """Drop the long texts; their marks and sources stay."""
        if self.has_long:
            for key, value in self.values.items():
                if value.is_long:
                    member = value.member if value.digest is not None else None
                    self.values[key] = Value(member, value.mark, value.source, value.cost, None, value.digest)
            self.has_long = False


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
    content = _checked(state)
    if before is not None and _TEXT.issuperset(map(type, content)) and [*content] == [*before.values]:
        return _follow(content, threshold, before)
    known = {} if before is None else before.values
    snapshot = Snapshot({}, [], _VALUE_COST, False)
    for key, item in content.items():
        value = known.get(key) if type(key) is str else None
        if value is None or value.source is not item:
            value = _read(key, item, threshold)
        snapshot.values[key] = value
        snapshot.sources.append(value.source)
        snapshot.cost += value.cost
        snapshot.has_long = snapshot.has_long or value.is_long
    return snapshot


def _follow(content: Mapping[str, object], threshold: int | None, before: Snapshot) -> Snapshot:
    """Return the snapshot of a state with the same keys as the one before: most values are the same objects."""
    keys, cost, has_long = [*content], before.cost, before.has_long
    values, sources = before.values.copy(), before.sources.copy()
    for index in compress(range(len(sources)), map(is_not, content.values(), before.sources)):
        key = keys[index]
        value = _read(key, content[key], threshold)
        values[key], sources[index] = value, value.source
        cost += value.cost - before.values[key].cost
        has_long = has_long or value.is_long
    return Snapshot(values, sources, cost, has_long)


def _read(key: object, item: object, threshold: int | None) -> Value:
    """Read one value of a state."""
    source = item if type(item) in _IMMUTABLE else _NO_SOURCE
    name = _name(key)
    try:
        text = dump_json(item, nesting=MAX_NESTING - 1)
    except InvalidInputError:
        dump_json(item, f"state.{key}", nesting=MAX_NESTING - 1)  # raises again, with the path
        raise
    if threshold is not None and len(text) >= threshold:
        digest = digest_of(text)
        return Value(name + b"null", digest.encode(), source, _cost(source), text, digest)
    member = name + text
    if len(text) <= KEPT_TEXT:
        return Value(member, member, source, _VALUE_COST + 2 * len(member))
    return Value(member, hashlib.blake2b(text, digest_size=32).digest(), source, _cost(source))


def plain_text(state: object) -> bytes:
    """Return the text of a body that is whole and names no blob; what `compose_whole` gives without a threshold.

    Raises:
        InvalidInputError: As `take_snapshot`.
    """
    return state.text if type(state) is EncodedState else dump_json(_checked(state))


def compose_whole(snapshot: Snapshot) -> Body:
    """Return the body of a whole row."""
    text = _object(snapshot.values)
    digests = _digests(snapshot.values)
    if not digests:
        return Body(PLAIN, True, text, digests)
    return Body(WITH_BLOBS, True, b'{"whole":' + text + b',"blobs":' + _references(snapshot.values) + b"}", digests)


def compose_delta(snapshot: Snapshot, base: Snapshot, sequence: int) -> Body | None:
    """Return the body of a row that builds on the row before it; None when a delta cannot express it.

    Args:
        snapshot: The state to store.
        base: The state of the row before.
        sequence: The sequence of the row before.
    """
    new, old = snapshot.values, base.values
    gone: list[str] = []
    if [*new] == [*old]:
        others = compress(new.items(), map(is_not, new.values(), old.values()))
        changed = {key: value for key, value in others if old[key].mark != value.mark}
    else:
        gone = [key for key in old if key not in new]
        order = [key for key in old if key in new] + [key for key in new if key not in old]
        if order != [*new]:
            return None
        changed = {key: value for key, value in new.items() if key not in old or old[key].mark != value.mark}
    unset = b",".join([quote(key).encode() for key in gone])
    text = b'{"base":%d,"set":%b,"unset":[%b]' % (sequence, _object(changed), unset)
    digests = _digests(changed)
    if not digests:
        return Body(DELTA, False, text + b"}", digests)
    return Body(WITH_BLOBS, False, text + b',"blobs":' + _references(changed) + b"}", digests)


def _checked(state: object) -> dict[str, object]:
    if type(state) is EncodedState:
        return state.content()
    if type(state) is not dict:
        raise InvalidInputError("frozen_state", f"must be a dict (a JSON object), not {type(state).__name__}")
    return state


_LONGEST_CACHED: Final = 128
"""Characters; longer keys are rare, and a cache of them could grow large."""


def _name(key: object) -> bytes:
    """Return a key as it stands before its value."""
    if type(key) is not str:
        raise InvalidInputError("state", f"key {shown(key)} is a {type(key).__name__}, not a str")
    return _cached_name(key) if len(key) <= _LONGEST_CACHED else _new_name(key)


def _new_name(key: str) -> bytes:
    try:
        return quote(key).encode() + b":"
    except UnicodeEncodeError:
        raise InvalidInputError("state", f"key {key!r} contains a lone surrogate") from None


_cached_name: Final = lru_cache(maxsize=4096)(_new_name)


def _cost(source: object) -> int:
    return _VALUE_COST + (len(source) if type(source) is str else 0)


def _object(values: Mapping[str, Value]) -> bytes:
    members = [
        value.member if value.member is not None else _name(key) + dump_json(value.source)
        for key, value in values.items()
    ]
    return b"{%b}" % b",".join(members)


def _digests(values: Mapping[str, Value]) -> Mapping[str, Value]:
    return {value.digest: value for value in values.values() if value.digest is not None}


def _references(values: Mapping[str, Value]) -> bytes:
    return b"{%b}" % b",".join(
        [b'%b"%b"' % (_name(key), value.mark) for key, value in values.items() if value.digest is not None]
    )
