"""Run the benchmarks: all of them, or those whose file names are given."""

from __future__ import annotations

import asyncio
import importlib
import platform
import sqlite3
import sys

SUBJECTS = ["engine", "sqlite_runs", "sqlite_size", "sqlite_queries", "postgres_runs", "redis_runs"]


def main(names: list[str]) -> None:
    unknown = set(names) - set(SUBJECTS)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}")
    for name in names or SUBJECTS:
        asyncio.run(importlib.import_module(name).run())


if __name__ == "__main__":
    main(sys.argv[1:])
