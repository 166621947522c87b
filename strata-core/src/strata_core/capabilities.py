"""What a store can do beyond the required saves, leases and loads."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Capability"]


class Capability(StrEnum):
    """A declared ability of a store.

    A store declares its capabilities as a value, and a wrapper forwards the value: asking whether an object *has* a
    method fails for every wrapper.  A call that needs an undeclared capability raises `UnsupportedError`.
    """

    QUERY = "query"
    """Lists threads and reads logs (`CheckpointQuery`)."""
    RETENTION = "retention"
    """Purges old threads (`CheckpointRetention`)."""
    DELTAS = "deltas"
    """Can store a running checkpoint as its difference from the previous one."""
    OFFLOAD = "offload"
    """Can store large values apart from their rows."""
    OWN_BLOBS = "own_blobs"
    """Keeps offloaded values itself, in the same atomic step as their row."""
    EXTERNAL_BLOBS = "external_blobs"
    """Can keep offloaded values in a separate `BlobStore`."""
    MULTI_PROCESS = "multi_process"
    """Several processes can open the same storage at once."""
    SERVER_CLOCK = "server_clock"
    """Leases are judged by the storage's own clock; without this, by the injected one."""
    EXPIRY = "expiry"
    """Can let finished threads expire by themselves."""
    READ_ONLY = "read_only"
    """Can be opened without the right to write."""
