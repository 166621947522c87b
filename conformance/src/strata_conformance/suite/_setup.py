"""What opening may create: nothing, unless it is there to set the storage up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, checkpoint
from strata_conformance.suite._base import Footprint, OpenStore, PortTests, lasting
from strata_conformance.suite._calls import CALLS, Call
from strata_core.capabilities import Capability
from strata_core.errors import SchemaVersionError, StoreUnavailableError
from strata_core.options import Setup

__all__ = ["SetupTests"]

REFUSALS = (StoreUnavailableError, SchemaVersionError)


async def _answers(opening: Any, calls: Iterable[Call]) -> dict[str, object]:
    """Return what each call comes to, or the error of the opening alone."""
    answers: dict[str, object] = {}
    try:
        async with opening as store:
            for call in calls:
                if call.needs is None or call.needs in store.capabilities:
                    try:
                        answers[call.name] = await call.ask(store, "t")
                    except Exception as error:  # noqa: BLE001  # whatever it raises is judged
                        answers[call.name] = error
    except REFUSALS as error:
        answers = {"opening": error}
    return answers


def _unlike_a_refusal(answers: dict[str, object]) -> dict[str, object]:
    """Return the answers that are no typed error whose message names the way out."""
    return {
        name: answer
        for name, answer in answers.items()
        if not isinstance(answer, REFUSALS) or "setup" not in str(answer)
    }


async def _is_blank(open_store: OpenStore) -> bool:
    """Open the store as always, which sets it up; tell whether nothing was there, and whether it works now."""
    async with open_store() as store:
        first = await store.load("t"), await store.live_lease("t"), await store.save(checkpoint())
    async with open_store() as store:
        entry = await store.load("t")
    return (None, None, 0) == first and entry is not None


class SetupTests(PortTests):
    """What is set up, when, and by whom."""

    @promise("setup-1")
    @lasting
    async def test_opening_without_setup_creates_nothing(
        self, open_blank_store: OpenStore, footprint: Footprint
    ) -> None:
        """Opening with setup="never" creates nothing: where no store was ever set up, it or every call after it raises
        StoreUnavailableError or SchemaVersionError, whose message names setup, this time and the next; what opens as
        always then finds no thread there, and sets it up.
        """
        before = footprint()
        answers = [await _answers(open_blank_store(setup=Setup.NEVER), CALLS) for _ in range(2)]
        after = footprint()
        is_blank = await _is_blank(open_blank_store)

        assert [{}, {}] == [_unlike_a_refusal(each) for each in answers]
        assert before == after
        assert is_blank

    @promise("setup-2")
    async def test_what_was_set_up_is_opened_without_setup(self, open_store: OpenStore) -> None:
        """Opened with setup="never", a store that was set up reads and writes as always."""
        async with open_store() as store:
            await store.save(checkpoint())
        async with open_store(setup=Setup.NEVER) as store:
            second = await store.save(checkpoint(state={"n": 1}))
            lease = await store.acquire_lease("t", owner="o", ttl=LONG)
            entry = await store.load("t")
        async with open_store() as store:
            latest, live = await store.load("t"), await store.live_lease("t")

        assert 1 == second
        assert lease is not None
        assert lease == live
        assert entry is not None
        assert entry == latest

    @promise("setup-3")
    @lasting
    @pytest.mark.requires(Capability.READ_ONLY)
    async def test_opening_read_only_creates_nothing(self, open_blank_store: OpenStore, footprint: Footprint) -> None:
        """Opening read-only creates nothing, whatever setup says: where no store was ever set up, it or every read
        after it raises StoreUnavailableError or SchemaVersionError, whose message names setup, this time and the next;
        what opens as always then finds no thread there, and sets it up.
        """
        reads = [call for call in CALLS if not call.writes]
        before = footprint()
        answers = [
            await _answers(open_blank_store(read_only=True, setup=setup), reads)
            for setup in (Setup.AUTO, Setup.NEVER, Setup.AUTO)
        ]
        after = footprint()
        is_blank = await _is_blank(open_blank_store)

        assert [{}, {}, {}] == [_unlike_a_refusal(each) for each in answers]
        assert before == after
        assert is_blank

    @promise("setup-4")
    @pytest.mark.requires(Capability.READ_ONLY)
    async def test_opening_read_only_changes_nothing(self, open_store: OpenStore, footprint: Footprint) -> None:
        """Opening read-only changes nothing that is stored and leaves nothing beside it, whatever is read."""
        async with open_store() as store:
            for n in range(3):
                await store.save(checkpoint(state={"n": n}))
            await store.acquire_lease("t", owner="o", ttl=LONG)
        before = footprint()
        for setup in Setup:
            async with open_store(read_only=True, setup=setup) as reader:
                entries = [await reader.load("t", at=n) for n in range(3)]
                live = await reader.live_lease("t")
                if Capability.QUERY in reader.capabilities:
                    assert 3 == len((await reader.get_log("t")).entries)
                    assert 1 == len((await reader.list_threads()).threads)
        after = footprint()
        async with open_store() as store:
            kept, held = [await store.load("t", at=n) for n in range(3)], await store.live_lease("t")

        assert [0, 1, 2] == [None if entry is None else entry.sequence for entry in entries]
        assert before == after
        assert entries == kept
        assert live is not None
        assert live == held
