"""Appends rows to a thread of its own and, conditionally, to a shared one; prints what was acknowledged."""

import sys

from postgres_support import save, with_backend

from strata_core.rows import Committed
from strata_postgres import PostgresBackend

url, name, count = sys.argv[1:]


async def work(backend: PostgresBackend) -> None:
    for number in range(int(count)):
        while True:
            head = await backend.read_head("shared")
            after = -1 if head is None else head.sequence
            body = b'{"by":"%s","number":%d}' % (name.encode(), number)
            own, shared = await backend.commit([save(name, body=body), save("shared", after=after, body=body)])
            assert isinstance(own, Committed)
            print(name, own.sequence, flush=True)
            if isinstance(shared, Committed):
                print("shared", shared.sequence, flush=True)
                break


with_backend(url, work)
