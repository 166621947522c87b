"""Runs on Postgres."""

from __future__ import annotations

from contextlib import ExitStack

from databases import Postgres
from runs import compare_runs

from strata_conformance.servers import PostgresServer


async def run() -> None:
    """Compare on a server of our own, whose commits are flushed."""
    with ExitStack() as stack:
        server = stack.enter_context(PostgresServer(durable=True))
        await compare_runs(Postgres(lambda: stack.enter_context(server.fresh_database()).url))
