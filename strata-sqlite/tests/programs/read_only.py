"""Reads a store as somebody without rights, and prints what it found."""

import json
import os
import sys

from sqlite_support import with_backend

from strata_core.errors import StrataError
from strata_core.rows import HeadQuery
from strata_sqlite import SqliteBackend

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


async def read(backend: SqliteBackend) -> object:
    heads = await backend.list_heads(HeadQuery(oldest_first=True))
    found = {}
    for head in heads:
        rows = await backend.read(head.thread_id, 0, None)
        blobs = await backend.read_blobs(head.thread_id, ["sha256:1"])
        found[head.thread_id] = [[row.sequence for row in rows], [content.decode() for content in blobs.values()]]
    return found


try:
    print(json.dumps(with_backend(sys.argv[1], read, read_only=True)))
except StrataError as error:
    print(type(error).__name__, error)
