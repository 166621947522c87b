"""What is left in a backend of a thread that has expired."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, SHORT, checkpoint, completed
from strata_conformance.suite._backend import BackendTests, OpenExpiringBackend
from strata_conformance.suite._base import Footprint
from strata_conformance.suite._expiry import expired
from strata_conformance.suite._stored import BIG, NAME
from strata_core.capabilities import Capability
from strata_core.options import Offload
from strata_core.records import GraphIdentity
from strata_core.rows import HeadQuery
from strata_core.store import RowStore
from strata_core.testing import FakeClock

__all__ = ["ExpiredRowTests"]


class ExpiredRowTests(BackendTests):
    """Expiry, looked at from below: define the fixture ``open_expiring_backend`` if the backend has a ttl."""

    @promise("stored-11")
    @pytest.mark.requires(Capability.EXPIRY)
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_purge_leaves_nothing_of_an_expired_thread(
        self, open_expiring_backend: OpenExpiringBackend, clock: FakeClock, footprint: Footprint
    ) -> None:
        """When a thread has expired and a purge was made, the backend has no head, row or blob of it, and nothing more
        stands in the storage than before the thread was saved.
        """
        backend = open_expiring_backend(SHORT)
        fields: dict[str, Any] = {"state": {"big": BIG}, "metadata": {"k": "v"}, "graph": GraphIdentity("g", "1")}
        own_blobs = Capability.OWN_BLOBS in backend.capabilities
        offload = Offload(threshold=10) if own_blobs else None
        async with RowStore(open_expiring_backend(SHORT), offload=offload) as store:
            await store.save(checkpoint("kept"))
        before = footprint()
        async with RowStore(backend, offload=offload) as store:
            await store.save(checkpoint(**fields))
            await store.save(completed(**fields))
            await expired(store, clock, SHORT, ["t"])
            await store.purge(BASE + timedelta(days=1))
            left: list[object] = [await backend.read_head("t"), *await backend.read("t", 0, None)]
            left += (await backend.read_blobs("t", [NAME])).values() if own_blobs else []
            for rowless in (False, True) if Capability.QUERY in backend.capabilities else ():
                left += [h for h in await backend.list_heads(HeadQuery(rowless=rowless)) if h.thread_id != "kept"]
        after = footprint()

        assert [None] == left
        assert set(before) == set(after)
