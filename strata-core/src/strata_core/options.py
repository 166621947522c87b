"""How a store is opened and how it encodes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import attrs

from strata_core._validation import shown
from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.errors import InvalidInputError

if TYPE_CHECKING:
    from strata_core.ports import BlobStore

__all__ = ["Deltas", "Offload", "Setup", "StoreOptions"]


def _at_least(minimum: int) -> Any:
    def check(_: object, attribute: attrs.Attribute[int], value: object) -> None:
        if type(value) is not int or value < minimum:
            raise InvalidInputError(attribute.name, f"must be an int of at least {minimum}, not {shown(value)}")

    return check


class Setup(StrEnum):
    """Whether opening a store may create or upgrade what it needs."""

    AUTO = "auto"
    NEVER = "never"


@attrs.frozen
class Deltas:
    """Store running checkpoints as their difference from the thread's previous one.

    Attributes:
        full_every: A row is whole at least this often; at least 2.
        cached_threads: How many threads' latest rows the store remembers, least recently used forgotten first.
        cached_bytes: How much memory those may take, roughly.
    """

    full_every: int = attrs.field(default=16, validator=_at_least(2))
    cached_threads: int = attrs.field(default=10_000, validator=_at_least(1))
    cached_bytes: int = attrs.field(default=64 << 20, validator=_at_least(1))


@attrs.frozen
class Offload:
    """Store large top-level values once, apart from their rows.

    Attributes:
        threshold: A value whose JSON has at least this many bytes is offloaded; ``sys.maxsize`` offloads nothing new
            but goes on reading what was offloaded before.
        blobs: Where they go: a `BlobStore`, or a URL such as ``file:blobs``; None is the store's own database.
    """

    threshold: int = attrs.field(default=64 << 10, validator=_at_least(1))
    blobs: BlobStore | str | None = None


@attrs.frozen
class StoreOptions:
    """What `open_store` hands to a store provider besides the URL.

    Attributes:
        read_only: Open without the right to write.
        setup: Whether opening may create or upgrade the storage.
        clock: Judges leases where the storage has no clock of its own.
        backend: The provider's own options, an instance of its `options_class`; None for its defaults.
    """

    read_only: bool = False
    setup: Setup = Setup.AUTO
    clock: Clock = SYSTEM_CLOCK
    backend: Any = None
