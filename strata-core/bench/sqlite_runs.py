"""Runs on SQLite."""

from __future__ import annotations

from databases import Sqlite
from runs import compare_runs


async def run() -> None:
    await compare_runs(Sqlite())
