"""The life of a row backend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from strata_conformance._promise import promise
from strata_conformance.suite._backend import BackendTests, OpenBackend, opened
from strata_conformance.suite._base import Footprint, lasting
from strata_conformance.suite._rows import append
from strata_core.capabilities import Capability
from strata_core.errors import SchemaVersionError
from strata_core.options import Setup
from strata_core.rows import (
    Committed,
    HeadQuery,
    RowBackend,
)

__all__ = ["RowLifecycleTests"]

READS: Final[dict[str, Callable[[RowBackend], Awaitable[Any]]]] = {
    "read_head": lambda backend: backend.read_head("t"),
    "read": lambda backend: backend.read("t", None, None),
    "read_blobs": lambda backend: backend.read_blobs("t", ["sha256:" + 64 * "0"]),
    "list_heads": lambda backend: backend.list_heads(HeadQuery()),
}

NEEDED: Final = {"read_blobs": Capability.OWN_BLOBS, "list_heads": Capability.QUERY}


class RowLifecycleTests(BackendTests):
    """A backend is opened, set up and closed."""

    @promise("row-15")
    async def test_a_backend_can_be_closed_at_any_time(self, open_backend: OpenBackend) -> None:
        """Closing is idempotent, also before and after a failed opening, and a closed backend can be opened again
        through a new one with all that was committed.
        """
        unopened = open_backend()
        await unopened.close()
        await unopened.close()
        backend = open_backend()
        async with opened(backend):
            await append(backend, "t")
        await backend.close()
        async with opened(open_backend()) as again:
            head = await again.read_head("t")

        assert head is not None
        assert 0 == head.sequence

    @promise("row-16")
    async def test_setup_can_be_run_any_number_of_times(self, open_backend: OpenBackend) -> None:
        """`setup` changes nothing that is there, however often and from however many backends it runs at once."""
        async with opened(open_backend()) as one, opened(open_backend()) as two:
            await append(one, "t")
            await asyncio.gather(one.setup(), two.setup(), one.setup())
            head = await two.read_head("t")

        assert head is not None
        assert 0 == head.sequence

    @promise("row-17")
    @lasting
    async def test_a_backend_waits_to_be_set_up(self, open_blank_backend: OpenBackend, footprint: Footprint) -> None:
        """A backend opens with `Setup.NEVER` where nothing was ever set up, and creates nothing: every call raises
        SchemaVersionError with "none" as what was found, until `setup` creates what it needs, for this backend and
        every other.
        """
        before = footprint()
        found = {}
        async with opened(open_blank_backend(), setup=Setup.NEVER) as one:
            unserved = {name for name, needed in NEEDED.items() if needed not in one.capabilities}
            reads = {name: ask for name, ask in READS.items() if name not in unserved}
            async with opened(open_blank_backend(), setup=Setup.NEVER) as two:
                for backend in (one, two):
                    for name, ask in reads.items():
                        with pytest.raises(SchemaVersionError) as caught:
                            await ask(backend)
                        found[name] = caught.value.found
                    with pytest.raises(SchemaVersionError) as caught:
                        await append(backend, "t")
                    found["commit"] = caught.value.found
                after = footprint()
                await one.setup()
                outcome = await append(one, "t")
                head = await two.read_head("t")
        async with opened(open_blank_backend(), setup=Setup.NEVER) as three:
            again = await append(three, "t")

        assert dict.fromkeys([*reads, "commit"], "none") == found
        assert before == after
        assert isinstance(outcome, Committed)
        assert head is not None
        assert 0 == head.sequence
        assert isinstance(again, Committed)
        assert 1 == again.sequence
