"""Runs on Valkey."""

from __future__ import annotations

from databases import Redis
from runs import compare_runs

from strata_conformance.servers import ValkeyServer


async def run() -> None:
    """Compare on a server of our own, which leaves flushing its log to the system."""
    with ValkeyServer() as server:
        await compare_runs(Redis(server.url))
