"""Input rules: refused before anything is written, by every call, with the argument's name."""

from __future__ import annotations

import collections
import decimal
import enum
import fractions
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs
import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, THREAD_IDS, checkpoint, every_field, forged
from strata_conformance.suite._base import OpenStore, PortTests, Store
from strata_conformance.suite._calls import CALLS, SAVES
from strata_conformance.suite._records import nested_to
from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError
from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    GraphIdentity,
    HumanDecision,
    Lease,
    Revision,
    ThreadQuery,
    Wait,
    WaitKind,
)

__all__ = ["InputRuleTests"]

NAIVE: Final = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001  # what must be refused
SURROGATE: Final = "\ud83d"


class _Text(str):
    __slots__ = ()


class _Number(enum.IntEnum):
    ONE = 1


BAD_THREAD_IDS: Final[list[Any]] = [
    None,
    1,
    True,
    b"x",
    uuid.UUID(int=1),
    ["t"],
    _Text("t"),
    "",
    "a\x00b",
    "\x00",
    SURROGATE,
    "a" + SURROGATE,
    "x" * 513,
    "\u00e9" * 257,
    "\U0001f600" * 129,
]

BAD_STATES: Final[list[tuple[Any, str]]] = [
    ({"a": float("nan")}, "state.a"),
    ({"items": [0, 1, 2, {"price": float("inf")}]}, "state.items[3].price"),
    ({"a": [[-float("inf")]]}, "state.a[0][0]"),
    ({"a": SURROGATE}, "state.a"),
    ({"a": {"b": ["x", SURROGATE + "y"]}}, "state.a.b[1]"),
    ({SURROGATE: 1}, "state"),
    ({"a": {SURROGATE: 1}}, "state.a"),
    ({1: "x"}, "state"),
    ({None: "x"}, "state"),
    ({True: "x"}, "state"),
    ({"a": {1.5: "x"}}, "state.a"),
    ({"a": [{("t",): 1}]}, "state.a[0]"),
    ({"a": {b"k": 1}}, "state.a"),
    ({"a": (1, 2)}, "state.a"),
    ({"a": {1, 2}}, "state.a"),
    ({"a": frozenset()}, "state.a"),
    ({"a": b"bytes"}, "state.a"),
    ({"a": [bytearray(b"x")]}, "state.a[0]"),
    ({"a": range(3)}, "state.a"),
    ({"a": object()}, "state.a"),
    ({"a": decimal.Decimal("1.5")}, "state.a"),
    ({"a": fractions.Fraction(1, 3)}, "state.a"),
    ({"a": 1 + 2j}, "state.a"),
    ({"a": BASE}, "state.a"),
    ({"a": timedelta(1)}, "state.a"),
    ({"a": uuid.UUID(int=1)}, "state.a"),
    ({"a": [_Text("x")]}, "state.a[0]"),
    ({"a": _Number.ONE}, "state.a"),
    ({"a": {"b": CheckpointStatus.RUNNING}}, "state.a.b"),
    ({"a": collections.OrderedDict(b=1)}, "state.a"),
    ({"a": collections.Counter("aab")}, "state.a"),
    ({"a": collections.deque([1])}, "state.a"),
    ({"a": 10**4300}, "state.a"),
    ({"a": [-(10**4300)]}, "state.a[0]"),
    ({"a": 1 << 20_000}, "state.a"),
]

BAD_METADATA: Final[list[Any]] = [
    {"a": 1},
    {"a": None},
    {"a": True},
    {"a": ["x"]},
    {1: "x"},
    {None: "x"},
    {b"a": "x"},
    {"a": "x\x00"},
    {"a\x00": "x"},
    {"a": SURROGATE},
    {SURROGATE: "x"},
    {"k" * 129: "v"},
    {"\u00e9" * 65: "v"},
    {"k": "v" * 1025},
    {"k": "\u00e9" * 513},
    {"fine": "fine", "k": 1.5},
]

BAD_LIMITS: Final[list[Any]] = [0, -1, True, False, 1001, 10**12, 10**30, "1", "1; drop table", 1.0, None]
BAD_POSITIONS: Final[list[Any]] = [-1, True, "0", 1.0, -(10**30), 2**31, 2**63, 10**30]
BAD_WRITE_IDS: Final[list[Any]] = [b"", b"7 bytes", b"9 bytes !", b"x" * 16, "8 chars!", bytearray(8), 8]
BAD_TTLS: Final[list[Any]] = [timedelta(0), timedelta(microseconds=-1), -LONG, timedelta.max, 30, 1.5, None, "1h"]
BAD_MOMENTS: Final[list[Any]] = [NAIVE, "2026-03-01T12:00:00Z", 1_770_000_000, BASE.date()]
BAD_EXPECTED: Final[list[Any]] = [
    -1,
    2**31,
    2**63,
    10**30,
    True,
    "0",
    0.0,
    b"12345678",
    Revision(-1, b"x" * 8),
    Revision(0, b"short"),
    Revision(0, "x" * 8),  # type: ignore[arg-type]  # what must be refused
    Revision(True, b"x" * 8),
]

Attempt = Callable[[Store], Awaitable[Any]]


async def refused(store: Store, attempts: list[tuple[str, Attempt]]) -> dict[str, str]:
    """Make each attempt; return for each the argument that its error names, or what happened instead."""
    outcomes: dict[str, str] = {}
    for name, attempt in attempts:
        try:
            result = await attempt(store)
        except InvalidInputError as error:
            outcomes[name] = error.argument
        except Exception as error:  # noqa: BLE001  # any other error is a finding, shown in the comparison
            outcomes[name] = f"raised {type(error).__name__}: {error}"
        else:
            outcomes[name] = f"returned {result!r}"
    return outcomes


async def untouched(store: Store) -> None:
    """Assert that the storage is as empty as it was."""
    if Capability.QUERY in store.capabilities:
        assert [] == list((await store.list_threads()).threads)
    assert await store.load("t") is None
    assert await store.live_lease("t") is None


class InputRuleTests(PortTests):
    """The same input is refused everywhere, by the same error."""

    @promise("input-1")
    async def test_thread_ids_are_kept_apart_exactly_as_they_are(self, open_store: OpenStore) -> None:
        """A thread ID is any text of 1 to 512 UTF-8 bytes without NUL and lone surrogates; two IDs that differ in any
        way are two threads: IDs are never trimmed, folded, normalised, split or matched as patterns."""
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
    @pytest.mark.parametrize("bad", BAD_THREAD_IDS, ids=repr)
    async def test_a_bad_thread_id_is_refused_by_every_call(self, open_store: OpenStore, bad: Any) -> None:
        """Every call refuses a thread ID that is no such text with InvalidInputError, which names the argument, and
        writes nothing."""
        async with open_store() as store:
            calls = [
                call for call in CALLS if call.argument and (call.needs is None or call.needs in store.capabilities)
            ]
            got = await refused(store, [(c.name, lambda s, ask=c.ask: ask(s, bad)) for c in calls])  # type: ignore[misc]
            await untouched(store)

        assert {call.name: True for call in calls} == {
            name: argument.endswith("thread_id") or argument for name, argument in got.items()
        }

    @promise("input-3")
    @pytest.mark.parametrize("way", list(SAVES))
    async def test_a_state_that_is_not_json_is_refused_with_its_path(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses a state that holds NaN, an infinity, a lone surrogate, a key that is no str, an integer
        of more than 4,300 digits, or a value of any type but dict, list, str, int, float, bool and None, with
        InvalidInputError that names the path, and writes nothing."""
        expected = {f"#{n} {path}": path for n, (_, path) in enumerate(BAD_STATES)}
        attempts: list[tuple[str, Attempt]] = [
            (f"#{n} {path}", lambda s, state=state: SAVES[way](s, checkpoint(state=state)))  # type: ignore[misc]
            for n, (state, path) in enumerate(BAD_STATES)
        ]
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        assert expected == got

    @promise("input-4")
    @pytest.mark.parametrize("way", list(SAVES))
    async def test_a_state_that_is_no_object_or_too_deep_is_refused(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses a state that is no object, and one that nests more than 200 levels, with
        InvalidInputError, and writes nothing."""
        endless: dict[str, Any] = {}
        endless["self"] = endless
        states = [None, [], [("a", 1)], "{}", 5, nested_to(201), nested_to(5000), endless]
        async with open_store() as store:
            got = await refused(
                store,
                [
                    (f"#{n}", lambda s, state=state: SAVES[way](s, attrs.evolve(checkpoint(), frozen_state=state)))  # type: ignore[misc]
                    for n, state in enumerate(states)
                ],
            )
            await untouched(store)

        assert {f"#{n}": True for n in range(len(states))} == {
            name: argument.startswith(("state", "frozen_state")) or argument for name, argument in got.items()
        }

    @promise("input-5")
    @pytest.mark.parametrize("way", [*SAVES, "list_threads"])
    async def test_bad_metadata_is_refused(self, open_store: OpenStore, way: str) -> None:
        """Metadata must be str to str, without NUL and lone surrogates, keys to 128 and values to 1,024 UTF-8 bytes:
        every save and every query refuses anything else with InvalidInputError, and writes nothing."""
        ways: dict[str, Callable[[Store, Any], Awaitable[Any]]] = {
            name: lambda s, metadata, save=save: save(s, checkpoint(metadata=metadata))  # type: ignore[misc]
            for name, save in SAVES.items()
        } | {"list_threads": lambda s, metadata: s.list_threads(ThreadQuery(metadata=metadata))}
        bad = [*BAD_METADATA, None, [("a", "b")], "a"]
        async with open_store() as store:
            if way == "list_threads" and Capability.QUERY not in store.capabilities:
                return
            attempts: list[tuple[str, Attempt]] = [
                (ascii(metadata)[:40], lambda s, metadata=metadata: ways[way](s, metadata))  # type: ignore[misc]
                for metadata in bad
            ]
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith("metadata") or argument for name, argument in got.items()
        }

    @promise("input-6")
    @pytest.mark.parametrize("way", list(SAVES))
    async def test_a_bad_field_is_refused_with_its_name(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses a naive or missing time, a field of the wrong type, and text with NUL or a lone surrogate
        in any field of the record, nested ones included, with InvalidInputError that names the field, and writes
        nothing."""
        good = every_field("t", CheckpointStatus.INTERRUPTED)
        assert good.decision is not None
        assert good.wait is not None
        assert good.graph is not None
        assert good.nested is not None
        bad: list[tuple[str, Any]] = [
            *(("created_at", attrs.evolve(good, created_at=moment)) for moment in [*BAD_MOMENTS, None]),
            *(("resumed_at", attrs.evolve(good, resumed_at=moment)) for moment in BAD_MOMENTS),
            *(
                ("decided_at", attrs.evolve(good, decision=attrs.evolve(good.decision, decided_at=moment)))
                for moment in [*BAD_MOMENTS, None]
            ),
            *(("due_at", attrs.evolve(good, wait=attrs.evolve(good.wait, due_at=moment))) for moment in BAD_MOMENTS),
            *(("nested", attrs.evolve(good, nested=attrs.evolve(good.nested, created_at=m))) for m in BAD_MOMENTS),
            *(("status", attrs.evolve(good, status=status)) for status in ("paused", None, "resumed", 1)),
            *(("suspended_node", attrs.evolve(good, suspended_node=node)) for node in (1, SURROGATE, b"N")),
            *(("next_node", attrs.evolve(good, next_node=node)) for node in (1, SURROGATE, b"N")),
            ("decision", attrs.evolve(good, decision={"boundary": "N"})),
            ("boundary", attrs.evolve(good, decision=attrs.evolve(good.decision, boundary=SURROGATE))),
            ("reviewer", attrs.evolve(good, decision=attrs.evolve(good.decision, reviewer=7))),
            ("approved", attrs.evolve(good, decision=attrs.evolve(good.decision, is_approved=1))),
            ("overrides", attrs.evolve(good, decision=attrs.evolve(good.decision, overrides={"a": float("nan")}))),
            ("overrides", attrs.evolve(good, decision=attrs.evolve(good.decision, overrides={1: "x"}))),
            ("wait", attrs.evolve(good, wait="event")),
            ("kind", attrs.evolve(good, wait=attrs.evolve(good.wait, kind="sleep"))),
            ("event_type", attrs.evolve(good, wait=attrs.evolve(good.wait, event_type=SURROGATE))),
            ("on_timeout", attrs.evolve(good, wait=attrs.evolve(good.wait, on_timeout=5))),
            ("graph", attrs.evolve(good, graph="g")),
            ("graph.id", attrs.evolve(good, graph=GraphIdentity(SURROGATE, "1"))),
            ("graph.id", attrs.evolve(good, graph=GraphIdentity("a\x00", "1"))),
            ("graph.version", attrs.evolve(good, graph=GraphIdentity("g", 1))),  # type: ignore[arg-type]
            ("nested", attrs.evolve(good, nested={"thread_id": "t"})),
            ("nested", attrs.evolve(good, nested=attrs.evolve(good.nested, frozen_state={"a": float("inf")}))),
            ("nested", attrs.evolve(good, nested=attrs.evolve(good.nested, metadata={"a": 1}))),
        ]
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = [
                (f"#{n} {field}", lambda s, record=record: SAVES[way](s, record))  # type: ignore[misc]
                for n, (field, record) in enumerate(bad)
            ]
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: (name.split()[1] in argument) or argument for name, argument in got.items()
        }

    @promise("input-7")
    @pytest.mark.parametrize("way", list(SAVES))
    async def test_only_a_checkpoint_can_be_saved(self, open_store: OpenStore, way: str) -> None:
        """Every save refuses anything that is no Checkpoint with InvalidInputError, and writes nothing."""
        bad: list[Any] = [{"thread_id": "t"}, "t", 5, object(), Checkpoint]
        if way != "acquire_lease":  # which takes None for: nothing to save
            bad.append(None)
        async with open_store() as store:
            got = await refused(store, [(repr(b), lambda s, b=b: SAVES[way](s, b)) for b in bad])  # type: ignore[misc]
            await untouched(store)

        assert {repr(b): True for b in bad} == {
            name: argument in ("checkpoint", "save") or argument for name, argument in got.items()
        }

    @promise("input-8")
    async def test_a_save_must_be_of_the_leased_thread(self, open_store: OpenStore) -> None:
        """A save under a lease, and an acquire with a save, refuse a checkpoint of another thread than the leased one
        with InvalidInputError, and write nothing."""
        async with open_store() as store:
            lease = await store.acquire_lease("t", owner="o", ttl=LONG)
            assert lease is not None
            got = await refused(
                store,
                [
                    ("save_under_lease", lambda s: s.save_under_lease(checkpoint("other"), lease)),
                    ("acquire", lambda s: s.acquire_lease("new", owner="o", ttl=LONG, save=checkpoint("other"))),
                ],
            )
            left = [await store.load("other"), await store.load("t"), await store.live_lease("new")]

        assert {"save_under_lease": True, "acquire": True} == {
            name: argument.endswith("thread_id") or argument for name, argument in got.items()
        }
        assert [None] * 3 == left

    @promise("input-9")
    async def test_limits_are_1_to_1000(self, open_store: OpenStore) -> None:
        """A limit is an int from 1 to 1,000, never a bool: list_threads, get_log and purge refuse anything else with
        InvalidInputError that names it."""
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = []
            if Capability.QUERY in store.capabilities:
                attempts += [(f"list {n!r}", lambda s, n=n: s.list_threads(ThreadQuery(limit=n))) for n in BAD_LIMITS]  # type: ignore[misc]
                attempts += [(f"log {n!r}", lambda s, n=n: s.get_log("t", limit=n)) for n in BAD_LIMITS]  # type: ignore[misc]
            if Capability.RETENTION in store.capabilities:
                attempts += [(f"purge {n!r}", lambda s, n=n: s.purge(BASE, limit=n)) for n in BAD_LIMITS]  # type: ignore[misc]
            got = await refused(store, attempts)

        assert {name: "limit" for name, _ in attempts} == got

    @promise("input-10")
    async def test_positions_are_ints_from_0(self, open_store: OpenStore) -> None:
        """A sequence is an int from 0 to 2,147,483,647, never a bool: load and get_log refuse anything else with
        InvalidInputError that names it."""
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = [
                (f"at {n!r}", lambda s, n=n: s.load("t", at=n))
                for n in BAD_POSITIONS  # type: ignore[misc]
            ]
            if Capability.QUERY in store.capabilities:
                attempts += [
                    (f"start {n!r}", lambda s, n=n: s.get_log("t", start=n))
                    for n in [*BAD_POSITIONS, None]  # type: ignore[misc]
                ]
            got = await refused(store, attempts)

        assert {name: name.split()[0] for name, _ in attempts} == got

    @promise("input-11")
    async def test_expectations_are_sequences_or_revisions(self, open_store: OpenStore) -> None:
        """What a conditional call expects is a sequence, a revision with a write ID of 8 bytes, or None; anything
        else is refused with InvalidInputError that names it, and nothing is written."""
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = []
            for expected in BAD_EXPECTED:
                attempts += [
                    (f"if {expected!r}", lambda s, e=expected: s.save_if_latest(checkpoint(), e)),  # type: ignore[misc]
                    (
                        f"under {expected!r}",
                        lambda s, e=expected: s.save_under_lease(checkpoint(), forged("t"), expected=e),
                    ),  # type: ignore[misc]
                    (
                        f"acquire {expected!r}",
                        lambda s, e=expected: s.acquire_lease("t", owner="o", ttl=LONG, expected=e),
                    ),  # type: ignore[misc]
                ]
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith("expected") or argument for name, argument in got.items()
        }

    @promise("input-12")
    async def test_write_ids_are_8_bytes(self, open_store: OpenStore) -> None:
        """A write ID is exactly 8 bytes: every save and acquire refuses anything else with InvalidInputError that names
        it, and writes nothing."""
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = []
            for bad in BAD_WRITE_IDS:
                attempts += [
                    (f"save {bad!r}", lambda s, w=bad: s.save(checkpoint(), write_id=w)),  # type: ignore[misc]
                    (f"if {bad!r}", lambda s, w=bad: s.save_if_latest(checkpoint(), None, write_id=w)),  # type: ignore[misc]
                    (f"under {bad!r}", lambda s, w=bad: s.save_under_lease(checkpoint(), forged("t"), write_id=w)),  # type: ignore[misc]
                    (f"take {bad!r}", lambda s, w=bad: s.acquire_lease("t", owner="o", ttl=LONG, write_id=w)),  # type: ignore[misc]
                    (
                        f"both {bad!r}",
                        lambda s, w=bad: s.acquire_lease("t", owner="o", ttl=LONG, save=checkpoint(), write_id=w),  # type: ignore[misc]
                    ),
                ]
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: "write_id" for name, _ in attempts} == got

    @promise("input-13")
    async def test_ttls_are_positive_and_owners_are_text(self, open_store: OpenStore) -> None:
        """A ttl is a positive timedelta of at most ten years, and an owner follows the rules of a thread ID: acquire and
        renew refuse anything else with InvalidInputError that names it, and take nothing."""
        async with open_store() as store:
            held = await store.acquire_lease("held", owner="o", ttl=LONG)
            assert held is not None
            attempts: list[tuple[str, Attempt]] = []
            for ttl in BAD_TTLS:
                attempts += [
                    (f"ttl take {ttl!r}", lambda s, ttl=ttl: s.acquire_lease("t", owner="o", ttl=ttl)),  # type: ignore[misc]
                    (f"ttl renew {ttl!r}", lambda s, ttl=ttl: s.renew_lease(held, ttl=ttl)),  # type: ignore[misc]
                ]
            for owner in BAD_THREAD_IDS:
                attempts.append((f"owner {owner!r}", lambda s, o=owner: s.acquire_lease("t", owner=o, ttl=LONG)))  # type: ignore[misc]
            got = await refused(store, attempts)
            live = await store.live_lease("held")
            longest = await store.acquire_lease("longest", owner="\u00e9" * 256, ttl=timedelta(days=3650))
            await untouched(store)

        assert {name: name.split()[0] for name, _ in attempts} == got
        assert held == live
        assert longest is not None

    @promise("input-14")
    async def test_only_a_lease_can_be_used(self, open_store: OpenStore) -> None:
        """Renew, release and save_under_lease refuse anything that is no Lease, or has no token above 0, with
        InvalidInputError."""
        bad: list[Any] = [None, 1, "t", {"token": 1}, *(Lease("t", token, "o", BASE) for token in (0, -1, True, "1"))]  # type: ignore[arg-type]
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = []
            for lease in bad:
                attempts += [
                    (f"renew {lease!r}", lambda s, lease=lease: s.renew_lease(lease, ttl=LONG)),  # type: ignore[misc]
                    (f"release {lease!r}", lambda s, lease=lease: s.release_lease(lease)),  # type: ignore[misc]
                    (f"save {lease!r}", lambda s, lease=lease: s.save_under_lease(checkpoint(), lease)),  # type: ignore[misc]
                ]
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith("lease") or argument for name, argument in got.items()
        }

    @promise("input-15")
    @pytest.mark.requires(Capability.QUERY)
    async def test_a_bad_query_is_refused(self, open_store: OpenStore) -> None:
        """A query refuses naive times, states that are no set of states, and values of the wrong type, with
        InvalidInputError that names the filter; a filter is never ignored."""
        bad: list[tuple[str, Any]] = [
            *((name, moment) for name in ("updated_after", "updated_before", "due_before") for moment in BAD_MOMENTS),
            *(("states", states) for states in ("interrupted", {"paused"}, ["interrupted", 1], 5, {None})),
            *(("graph_id", value) for value in (1, SURROGATE, b"g", "a\x00")),
            *(("graph_version", value) for value in (1, SURROGATE)),
            *(("leased", value) for value in (1, "yes", 0)),
            *(("cursor", value) for value in (1, b"x", True)),
        ]
        async with open_store() as store:
            attempts: list[tuple[str, Attempt]] = [
                (f"{name} #{n}", lambda s, name=name, value=value: s.list_threads(ThreadQuery(**{name: value})))  # type: ignore[misc]
                for n, (name, value) in enumerate(bad)
            ]
            attempts.append(("query", lambda s: s.list_threads({"states": None})))  # type: ignore[arg-type]
            got = await refused(store, attempts)

        assert {name: name.split()[0] for name, _ in attempts} == got

    @promise("input-16")
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_bad_purge_is_refused(self, open_store: OpenStore) -> None:
        """A purge refuses a naive or missing cutoff and states that are no set of states, with InvalidInputError that
        names the argument, and deletes nothing; a cutoff at either end of time is a cutoff."""
        states: list[Any] = ["completed", {"done"}, 5, [None], None]
        async with open_store() as store:
            await store.save(checkpoint("kept", CheckpointStatus.COMPLETED))
            attempts: list[tuple[str, Attempt]] = [
                (f"older_than {m!r}", lambda s, m=m: s.purge(m))
                for m in [*BAD_MOMENTS, None]  # type: ignore[misc]
            ]
            attempts += [(f"states {v!r}", lambda s, v=v: s.purge(BASE + LONG, states=v)) for v in states]  # type: ignore[misc]
            got = await refused(store, attempts)
            kept = await store.load("kept")
            none = await store.purge(datetime.min.replace(tzinfo=UTC))
            one = await store.purge(datetime.max.replace(tzinfo=UTC))

        assert {name: name.split()[0] for name, _ in attempts} == got
        assert kept is not None
        assert [0, 1] == [none, one]
