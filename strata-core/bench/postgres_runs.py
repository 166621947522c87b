"""Runs on Postgres."""

from __future__ import annotations

from databases import Postgres
from runs import compare_runs

from strata_conformance.servers import PostgresServer


async def run() -> None:
    with PostgresServer(durable=True) as server:
        await compare_runs(Postgres(server.fresh_database))
