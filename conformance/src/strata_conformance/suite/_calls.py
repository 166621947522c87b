"""Every call of the ports, so that a rule can be held against all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import attrs

from strata_conformance._samples import BASE, LONG, checkpoint, forged
from strata_conformance.suite._base import Store
from strata_core.capabilities import Capability
from strata_core.records import Checkpoint, ThreadQuery

__all__ = ["CALLS", "SAVES", "Call"]


@attrs.frozen
class Call:
    """One way to call a store.

    Attributes:
        name: What to call it in a report.
        ask: Makes the call for a thread ID.
        writes: Whether a read-only store refuses it.
        needs: The capability without which it is refused for another reason.
        argument: The error's `argument` when the thread ID breaks a rule; None when the call has no thread ID.
    """

    name: str
    ask: Callable[[Store, Any], Awaitable[Any]]
    writes: bool = False
    needs: Capability | None = None
    argument: str | None = "thread_id"


CALLS: Final = (
    Call("save", lambda store, thread: store.save(checkpoint(thread)), writes=True),
    Call("save_if_latest", lambda store, thread: store.save_if_latest(checkpoint(thread), None), writes=True),
    Call(
        "save_under_lease",
        lambda store, thread: store.save_under_lease(checkpoint(thread), forged(thread)),
        writes=True,
        argument="lease.thread_id",
    ),
    Call("load", lambda store, thread: store.load(thread)),
    Call("acquire_lease", lambda store, thread: store.acquire_lease(thread, owner="o", ttl=LONG), writes=True),
    Call(
        "acquire_lease with a save",
        lambda store, thread: store.acquire_lease(thread, owner="o", ttl=LONG, save=checkpoint(thread)),
        writes=True,
    ),
    Call(
        "renew_lease",
        lambda store, thread: store.renew_lease(forged(thread), ttl=LONG),
        writes=True,
        argument="lease.thread_id",
    ),
    Call(
        "release_lease",
        lambda store, thread: store.release_lease(forged(thread)),
        writes=True,
        argument="lease.thread_id",
    ),
    Call("live_lease", lambda store, thread: store.live_lease(thread)),
    Call(
        "list_threads",
        lambda store, _: store.list_threads(ThreadQuery()),
        needs=Capability.QUERY,
        argument=None,
    ),
    Call("get_log", lambda store, thread: store.get_log(thread), needs=Capability.QUERY),
    Call(
        "purge",
        lambda store, _: store.purge(BASE - timedelta(days=1)),
        writes=True,
        needs=Capability.RETENTION,
        argument=None,
    ),
)

SAVES: Final[dict[str, Callable[[Store, Checkpoint], Awaitable[Any]]]] = {
    "save": lambda store, record: store.save(record),
    "save_if_latest": lambda store, record: store.save_if_latest(record, None),
    "save_under_lease": lambda store, record: store.save_under_lease(record, forged("t")),
    "acquire_lease": lambda store, record: store.acquire_lease("t", owner="o", ttl=LONG, save=record),
}
"""The four ways to save a checkpoint of thread ``t``."""
