"""The other arguments of the ports: what is refused, with the name at fault."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from strata_conformance._promise import promise
from strata_conformance._samples import BASE, LONG, checkpoint, completed, forged
from strata_conformance.suite._bad import (
    BAD_EXPECTED,
    BAD_LIMITS,
    BAD_MOMENTS,
    BAD_POSITIONS,
    BAD_THREAD_IDS,
    BAD_TTLS,
    BAD_WRITE_IDS,
    HUGE,
    SURROGATE,
    Attempt,
    each,
    refused,
    untouched,
)
from strata_conformance.suite._base import OpenStore, PortTests
from strata_core.capabilities import Capability
from strata_core.records import Lease, Revision, ThreadQuery

__all__ = ["ArgumentRuleTests"]


def blamed(attempts: list[Attempt]) -> dict[str, str]:
    """Return what `refused` should return: each attempt names its first word."""
    return {name: name.split()[0] for name, _ in attempts}


class ArgumentRuleTests(PortTests):
    """The same argument is refused everywhere, by the same error."""

    @promise("argument-1")
    async def test_limits_are_1_to_1000(self, open_store: OpenStore) -> None:
        """A limit is an int from 1 to 1,000, never a bool: list_threads, get_log and purge refuse anything else with
        InvalidInputError that names it.
        """
        async with open_store() as store:
            attempts: list[Attempt] = []
            if Capability.QUERY in store.capabilities:
                attempts += each("limit list", BAD_LIMITS, lambda s, n: s.list_threads(ThreadQuery(limit=n)))
                attempts += each("limit log", BAD_LIMITS, lambda s, n: s.get_log("t", limit=n))
            if Capability.RETENTION in store.capabilities:
                attempts += each("limit purge", BAD_LIMITS, lambda s, n: s.purge(BASE, limit=n))
            got = await refused(store, attempts)

        assert blamed(attempts) == got

    @promise("argument-2")
    async def test_positions_are_ints_from_0(self, open_store: OpenStore) -> None:
        """A sequence is an int from 0 to 2,147,483,647, never a bool: load and get_log refuse anything else with
        InvalidInputError that names it.
        """
        async with open_store() as store:
            attempts = each("at", BAD_POSITIONS, lambda s, n: s.load("t", at=n))
            if Capability.QUERY in store.capabilities:
                attempts += each("start", [*BAD_POSITIONS, None], lambda s, n: s.get_log("t", start=n))
            got = await refused(store, attempts)

        assert blamed(attempts) == got

    @promise("argument-3")
    async def test_expectations_are_sequences_or_revisions(self, open_store: OpenStore) -> None:
        """What a conditional call expects is a sequence, a revision with a write ID of 8 bytes, or None; anything
        else is refused with InvalidInputError that names it, and nothing is written.
        """
        record, lease = checkpoint(), forged("t")
        attempts = [
            *each("if", BAD_EXPECTED, lambda s, e: s.save_if_latest(record, e)),
            *each("under", BAD_EXPECTED, lambda s, e: s.save_under_lease(record, lease, expected=e)),
            *each("take", BAD_EXPECTED, lambda s, e: s.acquire_lease("t", owner="o", ttl=LONG, expected=e)),
            *each(
                "both", BAD_EXPECTED, lambda s, e: s.acquire_lease("t", owner="o", ttl=LONG, save=record, expected=e)
            ),
        ]
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith("expected") or argument for name, argument in got.items()
        }

    @promise("argument-4")
    async def test_write_ids_are_8_bytes(self, open_store: OpenStore) -> None:
        """A write ID is exactly 8 bytes: every save and acquire refuses anything else with InvalidInputError that names
        it, and writes nothing.
        """
        record, lease, ids = checkpoint(), forged("t"), BAD_WRITE_IDS
        attempts = [
            *each("write_id save", ids, lambda s, w: s.save(record, write_id=w)),
            *each("write_id if", ids, lambda s, w: s.save_if_latest(record, None, write_id=w)),
            *each("write_id under", ids, lambda s, w: s.save_under_lease(record, lease, write_id=w)),
            *each("write_id take", ids, lambda s, w: s.acquire_lease("t", owner="o", ttl=LONG, write_id=w)),
            *each(
                "write_id both", ids, lambda s, w: s.acquire_lease("t", owner="o", ttl=LONG, save=record, write_id=w)
            ),
        ]
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        assert blamed(attempts) == got

    @promise("argument-5")
    async def test_ttls_are_positive_and_owners_are_text(self, open_store: OpenStore) -> None:
        """A ttl is a positive timedelta of at most ten years, and an owner follows the rules of a thread ID: acquire
        and renew refuse anything else with InvalidInputError that names it, and take nothing.
        """
        async with open_store() as store:
            held = await store.acquire_lease("held", owner="o", ttl=LONG)
            attempts = [
                *each("ttl take", BAD_TTLS, lambda s, ttl: s.acquire_lease("t", owner="o", ttl=ttl)),
                *each("ttl renew", BAD_TTLS, lambda s, ttl: s.renew_lease(held, ttl=ttl)),
                *each("owner", BAD_THREAD_IDS, lambda s, owner: s.acquire_lease("t", owner=owner, ttl=LONG)),
            ]
            got = await refused(store, attempts)
            live = await store.live_lease("held")
            longest = await store.acquire_lease("longest", owner="\u00e9" * 256, ttl=timedelta(days=3650))
            await untouched(store)

        assert blamed(attempts) == got
        assert held is not None
        assert held == live
        assert longest is not None

    @promise("argument-6")
    async def test_only_a_lease_can_be_used(self, open_store: OpenStore) -> None:
        """Renew, release and save_under_lease refuse anything that is no Lease, or has no token above 0, with
        InvalidInputError that names it.
        """
        tokens: list[Any] = [0, -1, True, "1", None]
        bad: list[Any] = [None, 1, "t", {"token": 1}, *(Lease("t", token, "o", BASE) for token in tokens)]
        attempts = [
            *each("renew", bad, lambda s, lease: s.renew_lease(lease, ttl=LONG)),
            *each("release", bad, lambda s, lease: s.release_lease(lease)),
            *each("save", bad, lambda s, lease: s.save_under_lease(checkpoint(), lease)),
        ]
        async with open_store() as store:
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith("lease") or argument for name, argument in got.items()
        }

    @promise("argument-7")
    @pytest.mark.requires(Capability.QUERY)
    async def test_a_bad_query_is_refused(self, open_store: OpenStore) -> None:
        """A query refuses naive times, states that are no set of states, and values of the wrong type, with
        InvalidInputError that names the filter; a filter is never ignored.
        """
        bad: dict[str, list[Any]] = {
            "updated_after": BAD_MOMENTS,
            "updated_before": BAD_MOMENTS,
            "due_before": BAD_MOMENTS,
            "states": ["interrupted", {"paused"}, ["interrupted", 1], 5, {None}],
            "graph_id": [1, SURROGATE, b"g", "a\x00"],
            "graph_version": [1, SURROGATE],
            "leased": [1, "yes", 0],
            "oldest_first": [1, "yes", 0, None],
            "cursor": [1, b"x", True],
        }
        attempts = each("query", [{"states": None}, None], lambda s, query: s.list_threads(query))
        for name, values in bad.items():

            def ask(store: Any, value: Any, name: str = name) -> Any:
                return store.list_threads(ThreadQuery(**{name: value}))

            attempts += each(name, values, ask)
        async with open_store() as store:
            got = await refused(store, attempts)

        assert blamed(attempts) == got

    @promise("argument-8")
    @pytest.mark.requires(Capability.RETENTION)
    async def test_a_bad_purge_is_refused(self, open_store: OpenStore) -> None:
        """A purge refuses a naive or missing cutoff and states that are no set of states, with InvalidInputError that
        names the argument, and deletes nothing; a cutoff at either end of time is a cutoff.
        """
        states: list[Any] = ["completed", {"done"}, 5, [None], None]
        attempts = [
            *each("older_than", [*BAD_MOMENTS, None], lambda s, moment: s.purge(moment)),
            *each("states", states, lambda s, some: s.purge(BASE + LONG, states=some)),
        ]
        async with open_store() as store:
            await store.save(completed("kept"))
            got = await refused(store, attempts)
            kept = await store.load("kept")
            none = await store.purge(datetime.min.replace(tzinfo=UTC))
            one = await store.purge(datetime.max.replace(tzinfo=UTC))

        assert blamed(attempts) == got
        assert kept is not None
        assert [0, 1] == [none, one]

    @promise("argument-9")
    async def test_a_number_that_cannot_be_spelled_out_is_refused_like_any_other(self, open_store: OpenStore) -> None:
        """A number of more digits than Python turns into text is refused like any other bad value, wherever it stands:
        the message leaves it out.
        """
        lease = forged("t")
        attempts = [
            *each("at", [HUGE, -HUGE], lambda s, n: s.load("t", at=n)),
            *each("expected if", [HUGE, -HUGE], lambda s, n: s.save_if_latest(checkpoint(), n)),
            *each("expected under", [HUGE], lambda s, n: s.save_under_lease(checkpoint(), lease, expected=n)),
            *each("expected take", [HUGE], lambda s, n: s.acquire_lease("t", owner="o", ttl=LONG, expected=n)),
            *each("expected.sequence", [HUGE], lambda s, n: s.save_if_latest(checkpoint(), Revision(n, bytes(8)))),
            *each("state", [{HUGE: 1}], lambda s, v: s.save(checkpoint(state=v))),
            *each("frozen_state", [HUGE], lambda s, v: s.save(checkpoint(state=v))),
            *each("state.a", [HUGE, {HUGE: 1}], lambda s, v: s.save(checkpoint(state={"a": v}))),
            *each("metadata", [{HUGE: "x"}, {"a": HUGE}, HUGE], lambda s, v: s.save(checkpoint(metadata=v))),
            *each("status", [HUGE], lambda s, n: s.save(checkpoint(status=n))),
            *each("write_id", [HUGE], lambda s, n: s.save(checkpoint(), write_id=n)),
            *each("thread_id", [HUGE], lambda s, n: s.load(n)),
            *each("owner", [HUGE], lambda s, n: s.acquire_lease("t", owner=n, ttl=LONG)),
            *each("ttl", [HUGE], lambda s, n: s.acquire_lease("t", owner="o", ttl=n)),
        ]
        async with open_store() as store:
            if Capability.QUERY in store.capabilities:
                attempts += each("limit", [HUGE, -HUGE], lambda s, n: s.list_threads(ThreadQuery(limit=n)))
                attempts += each("leased", [HUGE], lambda s, n: s.list_threads(ThreadQuery(leased=n)))
                attempts += each("states", [HUGE, {HUGE}], lambda s, v: s.list_threads(ThreadQuery(states=v)))
                attempts += each("start", [HUGE, -HUGE], lambda s, n: s.get_log("t", start=n))
            if Capability.RETENTION in store.capabilities:
                attempts += each("limit purge", [HUGE], lambda s, n: s.purge(BASE, limit=n))
                attempts += each("states purge", [[HUGE]], lambda s, v: s.purge(BASE, states=v))
            got = await refused(store, attempts)
            await untouched(store)

        assert {name: True for name, _ in attempts} == {
            name: argument.startswith(name.split()[0]) or argument for name, argument in got.items()
        }
