"""Many processes at once open a store for writing, append a row to a thread of their own, and close it.

They are forked before anything is opened: a process of its own imports for longer than it would work here.
"""

import os
import sys
import traceback

from postgres_support import save, with_backend


def main(url: str, count: int) -> int:
    """Return how many of the processes failed; each says why."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            try:
                with_backend(url, lambda backend: backend.commit([save(f"t{number}")]))  # noqa: B023  # called at once
            except BaseException:  # noqa: BLE001  # a child that failed must not go on as its parent
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
