"""The bare redis-py: one script a step, the steps of a batch in one pipeline."""

from __future__ import annotations

from contextlib import AsyncExitStack

from floor import Floor, Step
from redis.asyncio import Redis

_SCRIPT = """
redis.call('HSET', KEYS[1], 'sequence', ARGV[1], 'status', ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return ARGV[1]
"""


async def open_floor(stack: AsyncExitStack, url: str, prefix: str) -> Floor:
    """Return a floor on keys of its own."""
    client = Redis.from_url(url)
    stack.push_async_callback(client.aclose)
    digest = await client.script_load(_SCRIPT)

    async def write(steps: list[Step]) -> None:
        pipeline = client.pipeline(transaction=False)
        for thread, sequence, status, text in steps:
            head, rows = f"{prefix}:{{{thread}}}:head", f"{prefix}:{{{thread}}}:rows"
            pipeline.evalsha(digest, 2, head, rows, sequence, status, text)
        await pipeline.execute()

    return Floor(write)
