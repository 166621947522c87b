"""Lets time pass, on an injected clock or on a server's."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from strata_conformance.suite._base import Store
from strata_core.capabilities import Capability
from strata_core.records import Lease
from strata_core.testing import FakeClock

__all__ = ["outlive"]


async def outlive(store: Store, clock: FakeClock, lease: Lease, ttl: timedelta) -> None:
    """Return when `lease`, which was given `ttl`, is not live any more on the store's clock.

    An injected clock is moved to the very moment of expiry, in which a lease is no longer live.
    """
    if Capability.SERVER_CLOCK not in store.capabilities:
        clock.advance(ttl)
        return
    end = time.monotonic() + ttl.total_seconds() + 10
    while (live := await store.live_lease(lease.thread_id)) is not None and live.token == lease.token:
        assert time.monotonic() < end, "a lease outlived its ttl by ten seconds"
        await asyncio.sleep(0.01)
