"""200 levels of a state are allowed in every way to store it, and 201 in none."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from strata_core.errors import InvalidInputError
from strata_core.memory import MemoryBackend
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision
from strata_core.store import RowStore

NOW = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)
OPTIONS = [(None, None), (Deltas(), None), (None, Offload(threshold=1)), (Deltas(), Offload(threshold=1))]


def value(levels: int) -> Any:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    return nested


def checkpoint(state: dict[str, Any], **others: Any) -> Checkpoint:
    return Checkpoint("t", CheckpointStatus.RUNNING, state, NOW, next_node="A", **others)


def round_trip(saved: Checkpoint, deltas: Deltas | None = None, offload: Offload | None = None) -> Checkpoint | None:
    async def run() -> Checkpoint | None:
        async with RowStore(MemoryBackend(), deltas=deltas, offload=offload) as store:
            await store.save(checkpoint({}))
            await store.save(saved)
            entry = await store.load("t")
            return None if entry is None else entry.checkpoint

    return asyncio.run(run())


@pytest.mark.parametrize(("deltas", "offload"), OPTIONS)
def test_a_state_of_200_levels_is_stored(deltas: Deltas | None, offload: Offload | None) -> None:
    saved = checkpoint({"d": value(199)})

    assert saved == round_trip(saved, deltas, offload)


@pytest.mark.parametrize(("deltas", "offload"), OPTIONS)
def test_a_state_of_201_levels_is_refused_with_its_path(deltas: Deltas | None, offload: Offload | None) -> None:
    with pytest.raises(InvalidInputError, match="is nested more than 200 deep") as refusal:
        round_trip(checkpoint({"d": value(200)}), deltas, offload)

    assert "state.d" + "[0]" * 199 == refusal.value.argument


def test_subgraphs_do_not_count_as_levels_of_a_state() -> None:
    deep = checkpoint({"d": value(199)})
    saved = checkpoint({}, nested=checkpoint({}, nested=deep))

    assert saved == round_trip(saved)


def test_a_nested_state_of_201_levels_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is nested more than 200 deep"):
        round_trip(checkpoint({}, nested=checkpoint({"d": value(200)})))


def test_an_override_may_be_as_deep_as_a_value_of_the_state() -> None:
    saved = checkpoint({}, decision=HumanDecision("A", True, "kim", NOW, {"d": value(199)}))

    assert saved == round_trip(saved)
