"""Opening, closing, read-only opening, and the event loop a store belongs to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, checkpoint
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._calls import CALLS, Call
from strata_core.capabilities import Capability
from strata_core.errors import ReadOnlyError, StoreClosedError, UnsupportedError, UsageError

__all__ = ["LifecycleTests"]


async def _outcomes(store: Store, calls: list[Call]) -> dict[str, str]:
    outcomes = {}
    for call in calls:
        try:
            outcomes[call.name] = f"returned {await call.ask(store, 't')!r}"
        except Exception as error:  # noqa: BLE001  # whatever it raises is compared
            outcomes[call.name] = type(error).__name__
    return outcomes


def _served(store: Store) -> list[Call]:
    return [call for call in CALLS if call.needs is None or call.needs in store.capabilities]


class LifecycleTests(PortTests):
    """When a store may be used, and by whom."""

    @promise("open-1")
    async def test_a_closed_store_refuses_every_call(self, open_store: OpenStore) -> None:
        """After a store was closed every call raises StoreClosedError."""
        async with open_store() as store:
            calls = _served(store)
        got = await _outcomes(store, calls)

        assert {call.name: StoreClosedError.__name__ for call in calls} == got

    @promise("open-2")
    async def test_a_store_that_is_not_open_yet_refuses_every_call(self, open_store: OpenStore) -> None:
        """Before a store was opened every call raises StoreClosedError; making it touches no storage."""
        maker: Any = open_store()
        try:
            maker.save  # noqa: B018  # only whether there is one
        except (AttributeError, UsageError):  # a context manager that gives the store only once it is open
            return
        calls = _served(maker)
        got = await _outcomes(maker, calls)

        assert {call.name: StoreClosedError.__name__ for call in calls} == got

    @promise("open-3")
    async def test_a_store_closes_when_the_body_fails(self, open_store: OpenStore) -> None:
        """A store whose body raises is closed, the error passes on unchanged, and what was saved stays."""
        error = LookupError("of the application")
        caught: BaseException | None = None
        try:
            async with open_store() as store:
                await store.save(checkpoint())
                raise error
        except LookupError as raised:
            caught = raised
        with pytest.raises(StoreClosedError):
            await store.load("t")
        async with open_store() as store:
            entry = await store.load("t")

        assert error is caught
        assert entry is not None

    @promise("open-4")
    async def test_closing_one_handle_leaves_the_others_open(self, open_store: OpenStore) -> None:
        """Handles are independent: one goes on when another is closed."""
        async with open_store() as one:
            async with open_store() as two:
                await two.save(checkpoint())
            second = await one.save(checkpoint())
            entry = await one.load("t", at=0)

        assert 1 == second
        assert entry is not None

    @promise("open-5")
    async def test_saves_under_way_when_a_store_closes_are_done_or_refused(self, open_store: OpenStore) -> None:
        """A save that is under way while the store closes returns its sequence and is stored, or raises
        StoreClosedError and is not; none hangs.
        """
        async with open_store() as store:
            saves = [asyncio.ensure_future(store.save(checkpoint(f"t{n}", state={"n": n}))) for n in range(20)]
            await asyncio.sleep(0)
        got = await asyncio.wait_for(asyncio.gather(*saves, return_exceptions=True), 30)
        async with open_store() as store:
            entries = [await store.load(f"t{n}") for n in range(20)]

        assert [0 if entry is not None else StoreClosedError for entry in entries] == [
            outcome if isinstance(outcome, int) else type(outcome) for outcome in got
        ]

    @promise("open-6")
    def test_a_store_refuses_another_event_loop(self, open_store: OpenStore) -> None:
        """A store belongs to the event loop that opened it: in another one every call raises UsageError at once, and
        the store goes on in its own.
        """
        with asyncio.Runner() as own, asyncio.Runner() as other:
            manager = open_store()
            store: Store = own.run(manager.__aenter__())
            try:
                calls = _served(store)
                got = other.run(_outcomes(store, calls))
                sequence = own.run(store.save(checkpoint()))
            finally:
                own.run(manager.__aexit__(None, None, None))

        assert {call.name: UsageError.__name__ for call in calls} == got
        assert 0 == sequence

    @promise("open-7")
    async def test_capabilities_are_declared_as_a_value(self, open_store: OpenStore) -> None:
        """A store declares its capabilities as a frozen set of Capability, the same for every handle; retention and
        offload stand on what they need.
        """
        async with open_store() as one, open_store() as two:
            declared, again = one.capabilities, two.capabilities

        assert isinstance(declared, frozenset)
        assert {Capability} >= {type(capability) for capability in declared}
        assert declared == again
        assert (Capability.OFFLOAD in declared) == bool(declared & {Capability.OWN_BLOBS, Capability.EXTERNAL_BLOBS})

    @promise("readonly-1")
    @pytest.mark.requires(Capability.READ_ONLY)
    async def test_a_read_only_store_refuses_writes_and_reads(self, open_store: OpenStore) -> None:
        """A store that was opened read-only raises ReadOnlyError from every write, changes nothing, and answers every
        read.
        """
        async with open_store() as store:
            await store.save(checkpoint(state={"n": 0}))
            lease = await store.acquire_lease("t", owner="o", ttl=LONG)
        async with open_store(read_only=True) as reader:
            calls = [call for call in _served(reader) if call.writes]
            got = await _outcomes(reader, calls)
            entry, live = await reader.load("t"), await reader.live_lease("t")
            if Capability.QUERY in reader.capabilities:
                assert ["t"] == [thread.thread_id for thread in (await reader.list_threads()).threads]
                assert 1 == len((await reader.get_log("t")).entries)
        async with open_store() as store:
            latest = await store.load("t")

        assert {call.name: ReadOnlyError.__name__ for call in calls} == got
        assert entry is not None
        assert entry == latest
        assert lease == live

    @promise("readonly-2")
    @pytest.mark.requires(Capability.READ_ONLY)
    async def test_a_read_only_store_sees_what_others_write(self, open_store: OpenStore) -> None:
        """A store that was opened read-only sees what another handle saves while it is open."""
        async with open_store() as writer:
            await writer.save(checkpoint())
            async with open_store(read_only=True) as reader:
                seen = []
                for n in range(1, 4):
                    await writer.save(checkpoint(state={"n": n}))
                    entry = await reader.load("t")
                    seen.append(entry.sequence if entry is not None else None)

        assert [1, 2, 3] == seen

    @promise("readonly-3")
    @pytest.mark.refuses(Capability.READ_ONLY)
    async def test_a_store_that_cannot_be_opened_read_only_says_so(self, open_store: OpenStore) -> None:
        """A store that does not declare read-only opening raises UnsupportedError when it is opened so."""
        with pytest.raises(UnsupportedError) as caught:
            async with open_store(read_only=True):
                pass

        assert Capability.READ_ONLY is caught.value.capability
