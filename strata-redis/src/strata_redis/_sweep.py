"""Takes threads that have expired out of the index."""

from __future__ import annotations

from typing import Any, Final

from strata_redis._calls import SWEEP, Call
from strata_redis._errors import unavailable
from strata_redis._index import LEASE_CUT
from strata_redis._keys import EXPIRING, INDEX, Keys
from strata_redis._server import Server
from strata_redis._walk import walk_call

__all__ = ["sweep"]

AT_ONCE: Final = 200
"""How many of a bucket are taken out by one script."""


async def sweep(server: Server, keys: Keys, where: str) -> int:
    """Take out what the index still holds for expired threads; return how many they were."""
    calls = [Call(tag, (b"TIME",)) for tag in keys.tags]
    times: list[Any] = _checked(await server.read(calls), where)
    left = {
        bucket: (b"[x", b"(x%017dg" % (int(seconds) * 1_000_000 + int(micros)))
        for bucket, (seconds, micros) in enumerate(times)
    }
    swept = 0
    while left:
        found = _checked(
            await server.read(
                [walk_call(keys, bucket, bounds, AT_ONCE, LEASE_CUT, (), down=False) for bucket, bounds in left.items()]
            ),
            where,
        )
        threads: dict[int, list[bytes]] = {}
        for (bucket, (_, upper)), (_, position, names) in zip(list(left.items()), found, strict=True):
            if names:
                threads[bucket] = names.split(b"\0")
            if position:
                left[bucket] = (b"(" + position, upper)
            else:
                del left[bucket]
        calls = [_sweep_call(keys, bucket, names) for bucket, names in threads.items()]
        if calls:
            swept += sum(_checked(await server.run(calls), where))
    return swept


def _sweep_call(keys: Keys, bucket: int, threads: list[bytes]) -> Call:
    tag = keys.tags[bucket]
    names = [tag + INDEX, tag + EXPIRING, *(keys.thread(bucket, thread) for thread in threads)]
    return Call(tag, (b"%d" % keys.skip(bucket),), SWEEP, names)


def _checked(answers: list[Any], where: str) -> list[Any]:
    for answer in answers:
        if isinstance(answer, Exception):
            raise unavailable(answer, where)
    return answers
