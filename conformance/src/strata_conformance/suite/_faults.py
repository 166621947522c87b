"""Core's store on the backend when commits are lost, and when the backend finds damage."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, checkpoint
from strata_conformance.stores import Fault, FaultyBackend, When
from strata_conformance.suite._backend import BackendTests, OpenBackend
from strata_core.errors import ConflictError, CorruptCheckpointError, StoreUnavailableError
from strata_core.rows import Commit, Committed, Refused, RowBackend
from strata_core.store import RowStore

__all__ = ["LostCommitTests"]

lost = pytest.mark.parametrize("when", ["before", "after"])


class _Interrupted(FaultyBackend):
    """Lets others work between a commit that is lost and its repetition."""

    def __init__(self, backend: RowBackend, fault: Fault, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(backend, [fault])
        self._meanwhile = meanwhile

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        try:
            return await super().commit(batch)
        except StoreUnavailableError:
            await self._meanwhile()
            raise


async def _states(store: RowStore) -> list[Any]:
    states: list[Any] = []
    while (entry := await store.load("t", at=len(states))) is not None:
        states.append(entry.checkpoint.frozen_state["n"])
    return states


class LostCommitTests(BackendTests):
    """A commit whose outcome core does not know is sent again by core, and the caller does not notice."""

    @promise("retry-1")
    @lost
    async def test_a_lost_commit_is_sent_again(self, open_backend: OpenBackend, when: When) -> None:
        """Each save, conditional save, acquire, fenced save and renewal is done once, in order, though every first
        request or answer of its commit is lost.
        """
        faults = [Fault("commit", nth, when) for nth in (1, 3, 5, 7, 9)]
        async with FaultyBackend(open_backend(), faults) as backend, RowStore(backend) as store:
            got = [
                await store.save(checkpoint(state={"n": 0})),
                await store.save_if_latest(checkpoint(state={"n": 1}), 0),
            ]
            lease = await store.acquire_lease("t", owner="o", ttl=LONG, save=checkpoint(state={"n": 2}), expected=1)
            assert lease is not None
            got.append(await store.save_under_lease(checkpoint(state={"n": 3}), lease, expected=2))
            renewed = await store.renew_lease(lease, ttl=2 * LONG)
            states = await _states(store)

        assert [0, 1, 3] == got
        assert 2 == lease.saved
        assert lease.token == renewed.token
        assert [0, 1, 2, 3] == states

    @promise("retry-2")
    @lost
    async def test_a_lost_commit_is_recognised_behind_those_of_others(
        self, open_backend: OpenBackend, when: When
    ) -> None:
        """A save whose commit is lost, and is sent again when others have saved, is stored once; a conditional one
        whose request was lost conflicts with them, one whose answer was lost does not.
        """
        async with RowStore(open_backend()) as other:

            async def meanwhile() -> None:
                for n in range(3):
                    await other.save(checkpoint(state={"n": n}))

            async with (
                _Interrupted(open_backend(), Fault("commit", 1, when), meanwhile) as backend,
                RowStore(backend) as store,
            ):
                plain = await store.save(checkpoint(state={"n": "plain"}))
            async with (
                _Interrupted(open_backend(), Fault("commit", 1, when), meanwhile) as backend,
                RowStore(backend) as store,
            ):
                conditional: int | None = None
                try:
                    conditional = await store.save_if_latest(checkpoint(state={"n": "conditional"}), 3)
                except ConflictError as error:
                    assert 6 == error.latest  # noqa: PT017  # what it names is a part of the promise
            states = await _states(other)

        if when == "after":
            assert (0, 4) == (plain, conditional)
            assert ["plain", 0, 1, 2, "conditional", 0, 1, 2] == states
        else:
            assert (3, None) == (plain, conditional)
            assert [0, 1, 2, "plain", 0, 1, 2] == states

    @promise("retry-3")
    @pytest.mark.parametrize(("op", "call"), [("read_head", "live_lease"), ("read", "load"), ("commit", "save")])
    async def test_damage_that_the_backend_finds_reaches_the_caller(
        self, open_backend: OpenBackend, op: str, call: str
    ) -> None:
        """CorruptCheckpointError from the backend, such as of a head that it cannot read, reaches the caller as it is,
        nothing is written or taken for missing, and the store goes on.
        """
        error = CorruptCheckpointError("t", None, "has a head that cannot be read")
        async with RowStore(open_backend()) as other:
            await other.save(checkpoint(state={"n": 0}))
            async with FaultyBackend(open_backend(), [Fault(op, error=error)]) as backend, RowStore(backend) as store:
                argument: Any = checkpoint(state={"n": "refused"}) if call == "save" else "t"
                with pytest.raises(CorruptCheckpointError) as caught:
                    await getattr(store, call)(argument)
                entry = await store.load("t")
                again = await store.save(checkpoint(state={"n": 1}), write_id=os.urandom(8))
            states = await _states(other)

        assert error is caught.value
        assert entry is not None
        assert 1 == again
        assert [0, 1] == states
