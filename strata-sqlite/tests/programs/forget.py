"""Forgets to close a store, in one of several ways."""

import asyncio
import sys

from sqlite_support import save

from strata_core.options import Setup
from strata_sqlite import SqliteBackend

path, way = sys.argv[1:]
kept: list[object] = []


async def main() -> None:
    backend = SqliteBackend(path)
    await backend.open(read_only=False, setup=Setup.AUTO)
    await backend.commit([save("t")])
    if way == "global":
        kept.append(backend)
    if way == "pending":
        kept.append(asyncio.ensure_future(backend.commit([save("t")])))
        await asyncio.sleep(0)
    if way == "exception":
        raise SystemExit(0)


asyncio.run(main())
print("done")
