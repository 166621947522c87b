"""The rule book of a commit, rule by rule."""

from __future__ import annotations

import itertools

import pytest

from strata_core.rows import (
    ANY,
    NOTHING,
    Commit,
    Committed,
    Drop,
    Extend,
    Head,
    NewRow,
    Refusal,
    Refused,
    Take,
    decide,
)

NOW = 1_000_000
ID = b"commit-0"
OTHER = b"commit-1"
ROW = NewRow("1.7.0", True, b"{}", b"{}", "running", "running", 5, metadata={"k": "v"})
DELTA = NewRow("1.8.0", False, b"{}", b"{}", "running", "running", 6)


def head(**fields) -> Head:
    values = {"sequence": 3, "whole_at": 2, "write_ids": b"row---03row---02row---01row---00", "state": "running"}
    return Head("t", **{**values, **fields})


LEASE = {"token": 7, "owner": "a", "expires": NOW + 10, "lease_id": OTHER}
EXPIRED = {**LEASE, "expires": NOW}
NO_ROWS = {"sequence": NOTHING, "whole_at": NOTHING, "write_ids": b"", "state": ""}


def judge(known: Head | None, **fields) -> Committed | Refused:
    return decide(Commit("t", fields.pop("write_id", ID), **fields), known, NOW, itertools.count(100).__next__)


def refusal(known: Head | None, **fields) -> Refusal | None:
    outcome = judge(known, **fields)
    return outcome.why if isinstance(outcome, Refused) else None


@pytest.mark.parametrize(
    ("known", "fields", "expected"),
    [
        (None, {"row": ROW}, None),
        (None, {"row": ROW, "after": NOTHING}, None),
        (None, {"row": ROW, "after": 0}, Refusal.CHANGED),
        (None, {"row": ROW, "token": 7}, Refusal.LOST),
        (head(), {"row": ROW, "after": 3}, None),
        (head(), {"row": ROW, "after": 3, "after_id": b"row---03"}, None),
        (head(), {"row": ROW, "after": 3, "after_id": b"row---02"}, Refusal.CHANGED),
        (head(), {"row": ROW, "after": 2}, Refusal.CHANGED),
        (head(), {"row": ROW, "after": NOTHING}, Refusal.CHANGED),
        (head(**NO_ROWS, **LEASE), {"row": ROW, "after": NOTHING}, None),
        (head(**LEASE), {"row": ROW}, None),
        (head(**LEASE), {"row": ROW, "free": True}, Refusal.HELD),
        (head(**EXPIRED), {"row": ROW, "free": True}, None),
        (head(**LEASE), {"row": ROW, "token": 7}, None),
        (head(**LEASE), {"row": ROW, "token": 8}, Refusal.LOST),
        (head(**EXPIRED), {"row": ROW, "token": 7}, Refusal.LOST),
        (head(), {"row": ROW, "token": 7}, Refusal.LOST),
        (head(**LEASE), {"row": ROW, "token": 7, "after": 2}, Refusal.CHANGED),
        (head(**LEASE), {"lease": Take("b", 5)}, Refusal.HELD),
        (head(**EXPIRED), {"lease": Take("b", 5)}, None),
        (head(**LEASE), {"lease": Take("b", 5), "token": 7}, None),
        (head(**LEASE), {"lease": Extend(5), "token": 7}, None),
        (head(**EXPIRED), {"lease": Extend(5), "token": 7}, Refusal.LOST),
        (head(**EXPIRED), {"lease": Drop(), "token": 7}, Refusal.LOST),
        (head(**LEASE, closing=True), {"row": ROW}, Refusal.CLOSING),
        (head(**EXPIRED, closing=True), {"row": ROW}, Refusal.CLOSING),
        (head(**EXPIRED, closing=True), {"lease": Take("b", 5)}, Refusal.CLOSING),
        (head(**LEASE, closing=True), {"lease": Take("p", 5, closing=True)}, Refusal.CLOSING),
        (head(**EXPIRED, closing=True), {"lease": Take("p", 5, closing=True)}, None),
        (head(**LEASE, closing=True), {"token": 7, "erase": True}, None),
        (head(**LEASE), {"erase": True, "free": True}, Refusal.HELD),
    ],
)
def test_a_commit_is_allowed_or_refused_for_one_reason(known, fields, expected):
    assert expected is refusal(known, **fields)


def test_a_row_moves_the_head_and_keeps_the_lease():
    outcome = judge(head(**LEASE, external=True), row=ROW)

    assert (
        Head(
            "t",
            4,
            4,
            ID + b"row---03row---02row---01row---00",
            "running",
            5,
            metadata={"k": "v"},
            external=True,
            **LEASE,
        )
        == outcome.head
    )
    assert (4, 7, NOW + 10, False) == (outcome.sequence, outcome.token, outcome.expires, outcome.repeated)


def test_a_delta_leaves_the_whole_row_where_it_is():
    assert (4, 2) == ((new := judge(head(), row=DELTA).head).sequence, new.whole_at)


def test_a_head_keeps_the_last_eight_write_ids():
    known = None
    for n in range(12):
        known = judge(known, row=ROW, write_id=b"write-%02d" % n).head

    assert b"".join(b"write-%02d" % n for n in range(11, 3, -1)) == known.write_ids


@pytest.mark.parametrize("back", range(4))
def test_a_repeated_row_answers_with_its_sequence_before_any_condition(back):
    outcome = judge(
        head(**LEASE, closing=True), row=ROW, write_id=b"row---0%d" % (3 - back), after=99, token=55, free=True
    )

    assert (3 - back, True) == (outcome.sequence, outcome.repeated)


def test_eight_bytes_that_lie_across_two_write_ids_are_no_repetition():
    outcome = judge(head(write_ids=b"abcdefghijklmnop"), row=ROW, write_id=b"efghijkl")

    assert (4, False) == (outcome.sequence, outcome.repeated)


def test_a_repeated_lease_is_recognised_while_it_lives():
    live, expired = (judge(head(**fields), lease=Take("a", 5), write_id=OTHER) for fields in (LEASE, EXPIRED))

    assert (7, True) == (live.token, live.repeated)
    assert (100, False) == (expired.token, expired.repeated)


def test_a_repeated_row_whose_lease_has_passed_on_gets_no_token_of_somebody_else():
    outcome = judge(head(**LEASE), row=ROW, lease=Take("a", 5), write_id=b"row---03")

    assert (3, 0, True) == (outcome.sequence, outcome.token, outcome.repeated)


def test_a_lease_without_rows_makes_a_head_without_rows_that_goes_with_it():
    taken = judge(None, lease=Take("a", 5))
    dropped = judge(taken.head, lease=Drop(), token=taken.token)

    assert (NOTHING, 100, "a", NOW + 5, ID) == (
        taken.head.sequence, taken.head.token, taken.head.owner, taken.head.expires, taken.head.lease_id
    )  # fmt: skip
    assert dropped.head is None


def test_a_token_is_drawn_only_when_a_lease_is_taken():
    drawn = []

    def draw() -> int:
        drawn.append(1)
        return 1

    for fields in ({"row": ROW}, {"lease": Extend(5), "token": 7}, {"lease": Take("b", 5)}):
        decide(Commit("t", ID, **fields), head(**LEASE), NOW, draw)

    assert [] == drawn


def test_erasing_removes_the_head_unless_a_lease_is_taken_in_the_same_step():
    gone = judge(head(external=True), erase=True)
    closing = judge(head(external=True), erase=True, lease=Take("p", 5, closing=True))

    assert gone.head is None
    assert Head("t", external=True, token=100, owner="p", expires=NOW + 5, lease_id=ID, closing=True) == closing.head


def test_external_blobs_are_remembered_from_the_first_commit_that_may_have_some():
    first = judge(None, row=ROW, external=True).head
    second = decide(Commit("t", OTHER, row=ROW), first, NOW, int).head

    assert (True, True) == (first.external, second.external)


def test_any_asks_for_nothing():
    assert None is refusal(head(), row=ROW, after=ANY)
