"""Many processes at once open a store, which sets it up if nobody has, and save a checkpoint each."""

import asyncio
import os
import sys

from redis_support import opened, save


async def open_and_save(url: str, name: str) -> None:
    async with opened(url) as backend:
        await backend.commit([save(name)])


def main(url: str, count: int) -> int:
    """Print how many of the processes did well."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(open_and_save(url, f"t{number}"))
            except BaseException:  # noqa: BLE001  # a child that failed must not go on as its parent
                os._exit(1)
            os._exit(0)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] == 0 for child in children)


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2])))
