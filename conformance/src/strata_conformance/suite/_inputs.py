"""Thread IDs and records: what is refused before anything is written, by every call, with the name at fault."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import LONG, THREAD_IDS, checkpoint, every_field
from strata_conformance.suite._bad import (
    BAD_METADATA,
    BAD_MOMENTS,
    BAD_STATES,
    BAD_THREAD_IDS,
    SURROGATE,
    Attempt,
    each,
    refused,
    untouched,
)
from strata_conformance.suite._base import OpenStore, PortTests
from strata_conformance.suite._calls import CALLS, SAVES
from strata_conformance.suite._records import nested_to
from strata_core.capabilities import Capability
from strata_core.records import Checkpoint, CheckpointStatus, ThreadQuery

__all__ = ["InputRuleTests"]

ways = pytest.mark.parametrize("way", list(SAVES))


def broken(record: Any, path: str, value: Any) -> Any:
    """Return a record with another value at a path such as ``decision.reviewer``."""
    name, _, rest = path.partition(".")
    return attrs.evolve(record, **{name: broken(getattr(record, name), rest, value) if rest else value})


BAD_FIELDS: list[tuple[str, list[Any]]] = [
    ("created_at", [*BAD_MOMENTS, None]),
    ("resumed_at", BAD_MOMENTS),
    ("decision.decided_at", [*BAD_MOMENTS, None]),
    ("wait.due_at", BAD_MOMENTS),
    ("nested.created_at", [*BAD_MOMENTS, None]),
    ("status", ["paused", None, "resumed", 1]),
    ("suspended_node", [1, SURROGATE, b"N"]),
    ("next_node", [1, SURROGATE, b"N"]),
    ("decision", [{"boundary": "N"}, "approved"]),
    ("decision.boundary", [SURROGATE, None]),
    ("decision.reviewer", [7, None, SURROGATE]),
    ("decision.is_approved", [1, None, "yes"]),
    ("decision.overrides", [{"a": float("nan")}, {1: "x"}, {"a": (1,)}, None, []]),
    ("wait", ["event", {"kind": "event"}]),
    ("wait.kind", ["sleep", None]),
    ("wait.event_type", [SURROGATE, 5]),
    ("wait.on_timeout", [SURROGATE, 5]),
    ("graph", ["g", ("g", "1")]),
    ("graph.id", [SURROGATE, "a\x00", None, 1]),
    ("graph.version", [SURROGATE, "a\x00", None, 1]),
    ("nested", [{"thread_id": "t"}, "nested"]),
    ("nested.frozen_state", [{"a": float("inf")}, {1: "x"}, None, []]),
    ("nested.metadata", [{"a": 1}, None]),
    ("nested.nested.frozen_state", [{"a": [SURROGATE]}]),
    ("nested.graph.id", [5]),
]


class InputRuleTests(PortTests):
    """The same record is refused everywhere, by the same error."""

    @promise("input-1")
    async def test_thread_ids_are_kept_apart_exactly_as_they_are(self, open_store: OpenStore) -> None:
        """A thread ID is any text of 1 to 512 UTF-8 bytes without NUL and lone surrogates; two IDs that differ in any
        way are two threads: IDs are never trimmed, folded, normalised, split or matched as patterns.
        """
        async with open_store() as store:
            leases = {}
            for n, thread in enumerate(THREAD_IDS):
                assert 0 == await store.save(checkpoint(thread, state={"n": n}))
                leases[thread] = await store.acquire_lease(thread, owner=f"o{n}", ttl=LONG)
            entries = {thread: await store.load(thread) for thread in THREAD_IDS}
            live = {thread: await store.live_lease(thread) for thread in THREAD_IDS}

        assert {thread: (thread, 0, {"n": n}) for n, thread in enumerate(THREAD_IDS)} == {
            thread: (entry.checkpoint.thread_id, entry.sequence, entry.checkpoint.frozen_state)
            for thread, entry in entries.items()
            if entry is not None
        }
        assert leases == live

    @promise("input-2")
    async def test_a_bad_thread_id_is_refused_by_every_call(self, open_store: OpenStore) -> None:
        """Every call refuses a thread ID that is no such text with InvalidInputError, which names the argument, and
        writes nothing.
        """
        async with open_store() as store:
            calls = [call for call in CALLS if call.argument and (not call.needs or call.needs in store.capabilities)]
            attempts = [attempt for call in calls for attempt in each(call.name, BAD_THREAD_IDS, call.ask)]
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.endswith("thread_id") or argument for name, argument in got.items()
        }

    @promise("input-3")
    @ways
    async def test_a_state_that_is_not_json_is_refused_with_its_path(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses a state that holds NaN, an infinity, a lone surrogate, a key that is no str, an integer
        of more than 4,300 digits, or a value of any type but dict, list, str, int, float, bool and None, with
        InvalidInputError that names the path, and writes nothing.
        """
        attempts = [
            attempt
            for state, path in BAD_STATES
            for attempt in each(path, [state], lambda store, state: SAVES[way](store, checkpoint(state=state)))
        ]
        async with open_store() as store:
            got = [(name.split()[0], await refused(store, [(name, ask)])) for name, ask in attempts]
            await untouched(store)

        assert [(name.split()[0], {name: name.split()[0]}) for name, _ in attempts] == got

    @promise("input-4")
    @ways
    async def test_a_state_that_is_no_object_or_too_deep_is_refused(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses a state that is no object, and one that nests more than 200 levels, with
        InvalidInputError, and writes nothing.
        """
        endless: dict[str, Any] = {}
        endless["self"] = endless
        attempts = each(
            "state",
            [None, [], [("a", 1)], "{}", 5, endless],
            lambda store, state: SAVES[way](store, broken(checkpoint(), "frozen_state", state)),
        )
        attempts += each("depth", [201, 5000], lambda store, n: SAVES[way](store, checkpoint(state=nested_to(n))))
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith(("state", "frozen_state")) or argument for name, argument in got.items()
        }

    @promise("input-5")
    @ways
    async def test_bad_metadata_is_refused(self, open_store: OpenStore, way: str) -> None:
        """Metadata must be str to str, without NUL and lone surrogates, keys to 128 and values to 1,024 UTF-8 bytes:
        every save and every query refuses anything else with InvalidInputError, and writes nothing.
        """
        bad = [*BAD_METADATA, None, [("a", "b")], "a"]
        attempts = each("metadata", bad, lambda store, pairs: SAVES[way](store, checkpoint(metadata=pairs)))
        async with open_store() as store:
            if Capability.QUERY in store.capabilities:
                attempts += each("filter", bad, lambda store, pairs: store.list_threads(ThreadQuery(metadata=pairs)))
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith("metadata") or argument for name, argument in got.items()
        }

    @promise("input-6")
    @ways
    async def test_a_bad_field_is_refused_with_its_name(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses a naive or missing time, a field of the wrong type, and text with a lone surrogate in any
        field of the record, nested ones included, with InvalidInputError that names the field, and writes nothing.
        """
        good = every_field("t", CheckpointStatus.INTERRUPTED)
        attempts: list[Attempt] = []
        for path, values in BAD_FIELDS:

            def save(store: Any, value: Any, path: str = path) -> Any:
                return SAVES[way](store, broken(good, path, value))

            attempts += each(path, values, save)
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        def named(name: str, argument: str) -> bool:
            field = name.split(maxsplit=1)[0].rsplit(".", 1)[-1].replace("is_", "").replace("frozen_", "")
            return field in argument

        assert {name: True for name, _ in attempts} == {
            name: named(name, argument) or argument for name, argument in got.items()
        }

    @promise("input-7")
    @ways
    async def test_only_a_checkpoint_can_be_saved(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses anything that is no Checkpoint with InvalidInputError, and writes nothing."""
        bad: list[Any] = [{"thread_id": "t"}, "t", 5, Ellipsis, Checkpoint]
        if way != "acquire_lease":  # which takes None for: nothing to save
            bad.append(None)
        attempts = each("record", bad, SAVES[way])
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument in ("checkpoint", "save") or argument for name, argument in got.items()
        }

    @promise("input-8")
    async def test_a_save_must_be_of_the_leased_thread(self, open_store: OpenStore) -> None:
        """A save under a lease, and an acquire with a save, refuse a checkpoint of another thread than the leased one
        with InvalidInputError, and write nothing.
        """
        other = checkpoint("other")
        async with open_store() as store:
            lease = await store.acquire_lease("t", owner="o", ttl=LONG)
            got = await refused(
                store,
                [
                    ("save_under_lease", lambda s: s.save_under_lease(other, lease)),
                    ("acquire_lease", lambda s: s.acquire_lease("new", owner="o", ttl=LONG, save=other)),
                ],
            )
            left = [await store.load("other"), await store.load("t"), await store.live_lease("new")]

        assert {"save_under_lease": True, "acquire_lease": True} == {
            name: argument.endswith("thread_id") or argument for name, argument in got.items()
        }
        assert [None] * 3 == left
