"""The names of keys, and how places in the index are written.

Every thread belongs to one of N buckets.  The bucket is the hash tag of all its keys, so that in a cluster one script
can change a thread and the index of its bucket together:

    {strata:7}t:order-1     one hash a thread: `head`, `facts` (see `strata_redis._heads`), and for each row its record
                            `r0` and its state `s0`; the thread's own blobs under their digests
    {strata:7}index         a sorted set of all that is listed, by text alone; see `strata_redis._index`
    {strata:7}tokens        the counter of lease tokens
    {strata:7}expiring      a hash: what the index holds for threads that will expire
    {strata:meta}           a hash: format and N

One key holds all of a thread, so it goes at once or not at all, whether it is purged or expires.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

__all__ = ["BUCKETS", "EXPIRING", "INDEX", "LATEST", "Keys", "meta_tag", "moment", "time_of"]

BUCKETS: Final = 16
"""How many a new store gets."""
INDEX: Final = b"index"
TOKENS: Final = b"tokens"
EXPIRING: Final = b"expiring"

_EPOCH: Final = 1 << 63
LATEST: Final = _EPOCH - 1
"""The latest moment there is, in microseconds since 1970."""


def moment(micros: int) -> str:
    """Return a time as 16 digits whose order as text is that of time, from long before year 1 on."""
    return f"{micros + _EPOCH:016x}"


def time_of(text: str | bytes) -> int:
    """Return the microseconds since 1970 that `moment` wrote."""
    return int(text, 16) - _EPOCH


def meta_tag(prefix: str) -> bytes:
    """Return the name of what is known of the store as a whole."""
    return f"{{{prefix}:meta}}".encode()


class Keys:
    """The keys of one store.

    Args:
        prefix: What they begin with.
        buckets: N.
    """

    def __init__(self, prefix: str, buckets: int) -> None:
        self.tags = [f"{{{prefix}:{number}}}".encode() for number in range(buckets)]
        self._threads = [tag + b"t:" for tag in self.tags]
        self._buckets = [(tag + INDEX, tag + TOKENS, tag + EXPIRING) for tag in self.tags]

    def bucket(self, thread: bytes) -> int:
        """Return the number of a thread's bucket."""
        return crc32(thread) % len(self.tags)

    def thread(self, bucket: int, thread: bytes) -> bytes:
        """Return the key of a thread of that bucket."""
        return self._threads[bucket] + thread

    def of_bucket(self, bucket: int) -> tuple[bytes, bytes, bytes]:
        """Return the names of a bucket's own keys: index, tokens, expiring."""
        return self._buckets[bucket]

    def skip(self, bucket: int) -> int:
        """Return how many bytes stand before the thread ID in the keys of a bucket's threads."""
        return len(self._threads[bucket])
