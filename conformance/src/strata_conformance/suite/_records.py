"""Records come back as they were saved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, checkpoint, every_field, spelled
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_core.capabilities import Capability
from strata_core.records import Checkpoint, CheckpointStatus, HumanDecision, Wait, WaitKind

__all__ = ["RecordTests"]

STATES: dict[str, dict[str, Any]] = {
    "empty": {},
    "scalars": {"none": None, "true": True, "false": False, "zero": 0, "text": "", "list": [], "object": {}},
    "lookalikes": {"int": 1, "float": 1.0, "bool": True, "text": "1", "zeros": [0, 0.0, -0.0, False, "", None]},
    "integers": {"big": [2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**100, -(10**1000)]},
    "floats": {"edges": [0.1, 1 / 3, 1e308, 5e-324, -5e-324, 1e22, 1e-7, 123456789.123456789, 1.7976931348623157e308]},
    "text": {
        "all": ["\u00e9", "e\u0301", "\U0001f600", "\u2028\u2029", "\x00\x01\x1f\x7f", '"\\/\b\f\n\r\t', "\uffff"]
    },
    "keys": {
        "": 1,
        " ": 2,
        "a.b": 3,
        "a\x00b": 4,
        "$ref": 5,
        "__proto__": 6,
        "\U0001f600": 7,
        "0": 8,
        '"': 9,
        "schema_version": "9.9.9",
        "frozen_state": {},
    },
    "envelope": {"base": 1, "set": {"a": 1}, "unset": ["a"], "whole": {"b": 2}, "blobs": {"c": "sha256:" + "0" * 64}},
    "deep": {"a": [[[[{"b": {"c": [1, [2, [3]]]}}]]]]},
    "long": {"text": "\u00e9x" * 300_000, "list": list(range(5_000))},
}


def nested_to(depth: int) -> dict[str, Any]:
    """Return a state whose innermost container is the `depth`-th, the state itself counted."""
    inner: Any = {}
    for level in range(depth - 2):
        inner = [inner] if level % 2 else {"k": inner}
    return {"root": inner}


async def _there_and_back(store: Store, record: Checkpoint) -> Checkpoint:
    await store.save(record)
    entry = await store.load(record.thread_id)
    assert entry is not None
    return entry.checkpoint


class RecordTests(PortTests):
    """Whatever a record may hold is returned equal, in type and value."""

    @promise("record-1")
    @pytest.mark.parametrize("status", list(CheckpointStatus))
    async def test_every_field_comes_back_equal(self, open_store: OpenStore, status: CheckpointStatus) -> None:
        """A checkpoint of any status with every field filled in comes back equal, from this handle and after the
        storage was opened again.
        """
        record = every_field("t", status)
        async with open_store() as store:
            got = await _there_and_back(store, record)
        async with open_store() as store:
            again = await store.load("t", at=0)

        assert record == got
        assert again is not None
        assert record == again.checkpoint
        assert spelled(record.frozen_state) == spelled(again.checkpoint.frozen_state)

    @promise("record-2")
    @pytest.mark.parametrize("status", list(CheckpointStatus))
    async def test_fields_that_are_left_out_stay_left_out(
        self, open_store: OpenStore, status: CheckpointStatus
    ) -> None:
        """A checkpoint with nothing but the required fields comes back equal, the optional ones None or empty."""
        record = Checkpoint("t", status, {}, BASE)
        async with open_store() as store:
            got = await _there_and_back(store, record)

        assert record == got

    @promise("record-3")
    async def test_each_field_comes_back_alone(self, open_store: OpenStore) -> None:
        """Each optional field comes back equal when it is the only one, and so does each part of a decision, a wait
        and a nested checkpoint.
        """
        full = every_field("t", CheckpointStatus.INTERRUPTED)
        bare = Checkpoint("t", CheckpointStatus.INTERRUPTED, {}, BASE)
        names = ("suspended_node", "next_node", "metadata", "nested", "decision", "wait", "graph", "resumed_at")
        records = [attrs.evolve(bare, **{name: getattr(full, name)}) for name in names]
        waits = [
            Wait(WaitKind.PERSON),
            Wait(WaitKind.EVENT, "paid"),
            Wait(WaitKind.TIMER, due_at=BASE),
            Wait(WaitKind.PERSON, on_timeout="Remind", due_at=BASE),
        ]
        records += [attrs.evolve(bare, wait=wait) for wait in waits]
        records += [
            attrs.evolve(bare, decision=HumanDecision("Node", approved, "", BASE)) for approved in (True, False)
        ]
        records += [attrs.evolve(bare, suspended_node="", next_node="")]
        async with open_store() as store:
            got = [await _there_and_back(store, record) for record in records]

        assert records == got

    @promise("record-4")
    async def test_times_are_kept_to_the_microsecond_and_returned_in_utc(self, open_store: OpenStore) -> None:
        """A time of any offset comes back as the same moment, exact to the microsecond, in UTC; from year 1 to 9999."""
        india = timezone(timedelta(hours=5, minutes=30))
        moments = [
            datetime(2026, 3, 1, 17, 30, 0, 1, tzinfo=india),
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ]
        async with open_store() as store:
            got = [
                await _there_and_back(store, checkpoint(at=m, resumed_at=m, wait=Wait(WaitKind.TIMER, due_at=m)))
                for m in moments
            ]

        times = [(g.created_at, g.resumed_at, g.wait.due_at if g.wait else None) for g in got]
        assert [(m, m, m) for m in moments] == times
        assert {timedelta(0)} == {t.utcoffset() for row in times for t in row if t is not None}

    @promise("record-5")
    @pytest.mark.parametrize("kind", list(STATES))
    async def test_every_json_value_comes_back_in_type_and_value(self, open_store: OpenStore, kind: str) -> None:
        """Every JSON value comes back the same in type and value: 1 is not 1.0 or true, -0.0 keeps its sign, integers
        of any size and floats are exact, text is kept code point by code point, NUL included, and no key of a state
        means anything to the store.
        """
        state = STATES[kind]
        async with open_store() as store:
            got = await _there_and_back(store, checkpoint(state=state))
            nested = await _there_and_back(store, checkpoint("n", nested=checkpoint("n", state=state)))

        assert spelled(state) == spelled(got.frozen_state)
        assert nested.nested is not None
        assert spelled(state) == spelled(nested.nested.frozen_state)

    @promise("record-6")
    async def test_integers_of_4300_digits_are_exact(self, open_store: OpenStore) -> None:
        """Integers of up to 4,300 digits come back exactly."""
        numbers = [10**4299, 10**4300 - 1, -(10**4300 - 1)]
        async with open_store() as store:
            got = await _there_and_back(store, checkpoint(state={"numbers": numbers}))

        assert numbers == got.frozen_state["numbers"]

    @promise("record-7")
    async def test_a_state_may_nest_200_levels(self, open_store: OpenStore) -> None:
        """A state of 200 nested objects and lists, itself counted, comes back equal."""
        state = nested_to(200)
        async with open_store() as store:
            got = await _there_and_back(store, checkpoint(state=state))

        assert spelled(state) == spelled(got.frozen_state)

    @promise("record-8")
    async def test_metadata_comes_back_up_to_its_limits(self, open_store: OpenStore) -> None:
        """Metadata comes back equal: keys to 128 and values to 1,024 UTF-8 bytes, empty ones, and any text."""
        metadata = {
            "k" * 128: "v" * 1024,
            "\u00e9" * 64: "\u00e9" * 512,
            "": "",
            "a\nb": '"\\\u2028',
            "\U0001f600": "\U0001f600" * 256,
            "strata.error": "boom",
            "%": "_",
        } | {f"key-{n}": str(n) for n in range(50)}
        async with open_store() as store:
            got = await _there_and_back(store, checkpoint(metadata=metadata))

        assert metadata == got.metadata

    @promise("record-9")
    @pytest.mark.requires(Capability.QUERY)
    async def test_the_log_returns_the_same_records_as_a_load(self, open_store: OpenStore) -> None:
        """The log of a thread holds the very entries that loads of its sequences return."""
        async with open_store() as store:
            for status in CheckpointStatus:
                await store.save(every_field("t", status))
            log = await store.get_log("t")
            loads = [await store.load("t", at=n) for n in range(len(CheckpointStatus))]

        assert loads == list(log.entries)
        assert [every_field("t", status) for status in CheckpointStatus] == [e.checkpoint for e in log.entries]
