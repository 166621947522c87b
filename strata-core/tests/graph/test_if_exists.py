"""`run(..., if_exists="error")`: a thread begins once."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from strata_core.errors import InvalidInputError, StoreUnavailableError
from strata_core.graph import CheckpointPolicy, Completed, Failed, FailureCode, HumanSignal, Interrupted, StateGraph
from strata_core.memory import MemoryBackend
from strata_core.store import RowStore

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))
ONLY_BOUNDARIES = CheckpointPolicy.BOUNDARIES
STATES_OF_ONE_RUN = {
    CheckpointPolicy.BOUNDARIES: ["interrupted"],
    CheckpointPolicy.EVERY_NODE: ["running", "running", "interrupted"],
}


def graph(world: Any, policy: CheckpointPolicy, prepare: Any = lambda state: state) -> Any:
    async def slowly(state: dict[str, int]) -> dict[str, int]:
        for _ in range(5):
            await asyncio.sleep(0)
        return state

    return (
        new(dict)
        .add_node("Prepare", prepare)
        .add_node("Check", slowly)
        .add_interrupt_boundary("Check")
        .add_edge("Prepare", "Check")
        .compile(checkpointing=policy, clock=world.clock)
    )


def code(result: Any) -> str:
    return getattr(result, "code", type(result).__name__)


def states(rows: Any) -> list[str]:
    return [row[0] for row in rows]


@BOTH
def test_a_second_run_is_refused_and_leaves_the_waiting_thread_alone(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            ran = []

            def prepare(state: dict[str, int]) -> dict[str, int]:
                ran.append(state)
                return state

            compiled = graph(world, policy, prepare)
            await compiled.run("t", {"n": 1}, store, if_exists="error")
            before = await world.log(store, "t")
            again = await compiled.run("t", {"n": 2}, store, if_exists="error")

            assert FailureCode.THREAD_EXISTS is again.code
            assert "thread 't' exists already" in again.message
            assert None is again.node
            assert [{"n": 1}] == ran
            assert before == await world.log(store, "t")
            assert Completed("t", {"n": 1}) == await compiled.resume("t", HumanSignal.approve("jdoe"), store)

    asyncio.run(main())


@BOTH
def test_of_twenty_runs_exactly_one_begins_the_thread(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):
            compiled = graph(world, policy)
            results = await asyncio.gather(
                *(compiled.run("t", {"n": n}, one if n % 2 else other, if_exists="error") for n in range(20))
            )

            assert {"Interrupted": 1, FailureCode.THREAD_EXISTS: 19} == Counter(map(code, results))
            won = next(result for result in results if isinstance(result, Interrupted))
            assert won.frozen_state == (await one.load("t")).checkpoint.frozen_state
            assert STATES_OF_ONE_RUN[policy] == states(await world.rows(one, "t"))

    asyncio.run(main())


def test_a_run_that_is_overtaken_before_its_first_stop_writes_nothing(world: Any) -> None:
    async def main() -> None:
        async with world.pair() as (one, other):

            async def overtaken(state: dict[str, int]) -> dict[str, int]:
                await graph(world, ONLY_BOUNDARIES).run("t", {"n": 7}, other, if_exists="error")
                return state

            result = await graph(world, ONLY_BOUNDARIES, overtaken).run("t", {"n": 1}, one, if_exists="error")

            assert FailureCode.THREAD_EXISTS is result.code
            assert "Check" == result.node
            assert "wrote nothing" in result.message
            assert [{"n": 7}] == [checkpoint.frozen_state for checkpoint in await world.log(one, "t")]

    asyncio.run(main())


@BOTH
def test_a_save_whose_answer_was_lost_is_not_taken_for_somebody_elses(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:

            class LosesAnswers:
                def __init__(self) -> None:
                    self.lost: set[str] = set()

                def __getattr__(self, name: str) -> Any:
                    method = getattr(store, name)
                    if name not in ("save_if_latest", "acquire_lease") or name in self.lost:
                        return method

                    async def call(*args: Any, **kwargs: Any) -> Any:
                        await method(*args, **kwargs)
                        self.lost.add(name)
                        raise StoreUnavailableError("the answer was lost", maybe_written=True)

                    return call

            losing = LosesAnswers()
            result = await graph(world, policy).run("t", {"n": 1}, losing, if_exists="error")

            assert isinstance(result, Interrupted)
            assert 1 == len(losing.lost)
            assert STATES_OF_ONE_RUN[policy] == states(await world.rows(store, "t"))

    asyncio.run(main())


def test_a_lease_on_a_thread_without_a_checkpoint_is_a_lease_in_the_way(world: Any) -> None:
    async def main() -> None:
        async with world.open() as store:
            await store.acquire_lease("t", owner="rival", ttl=timedelta(minutes=1), write_id=os.urandom(8))
            result = await graph(world, CheckpointPolicy.EVERY_NODE).run("t", {"n": 1}, store, if_exists="error")

            assert FailureCode.LEASE_HELD is result.code

    asyncio.run(main())


@BOTH
def test_a_purged_thread_may_begin_again(world: Any, policy: CheckpointPolicy) -> None:
    async def main() -> None:
        async with world.open() as store:
            compiled = graph(world, policy)
            await compiled.run("t", {"n": 1}, store, if_exists="error")
            await compiled.end("t", store)
            world.clock.advance(timedelta(days=1))
            assert 1 == await store.purge(world.clock.now())

            assert isinstance(await compiled.run("t", {"n": 2}, store, if_exists="error"), Interrupted)

    asyncio.run(main())


@BOTH
def test_the_call_without_a_loop_takes_it_too(world: Any, policy: CheckpointPolicy) -> None:
    backend = MemoryBackend()
    compiled = graph(world, policy)

    assert isinstance(compiled.run_sync("t", {"n": 1}, RowStore(backend), if_exists="error"), Interrupted)
    again = compiled.run_sync("t", {"n": 1}, RowStore(backend), if_exists="error")
    assert isinstance(again, Failed)
    assert FailureCode.THREAD_EXISTS is again.code


@pytest.mark.parametrize("wrong", ["ignore", None, True])
def test_anything_else_is_refused_by_name(world: Any, wrong: object) -> None:
    async def main() -> None:
        with pytest.raises(InvalidInputError, match=r"^if_exists: must be 'append' or 'error', not "):
            await graph(world, ONLY_BOUNDARIES).run("t", {"n": 1}, None, if_exists=wrong)

    asyncio.run(main())
