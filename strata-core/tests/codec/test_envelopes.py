"""Envelopes: what many checkpoints have in common is remembered, and judged as at the first time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from strata_core import Checkpoint, CheckpointStatus, InvalidInputError
from strata_core.codec._record_encoder import encode_envelope

NOW = datetime(2026, 10, 30, 14, 49, 52, 7, tzinfo=UTC)


class Word(str):
    __slots__ = ()


def envelope(thread_id="t", suspended="a", following="b", status=CheckpointStatus.RUNNING):
    return encode_envelope(Checkpoint(thread_id, status, {}, NOW, suspended, following))[0]


def test_it_holds_what_the_checkpoint_holds():
    head = b',"thread_id":"t","status":"running","created_at":"2026-10-30T14:49:52.000007Z"'

    assert head + b',"suspended_node":"a","next_node":"b"}' == envelope()
    assert head + b',"next_node":"b"}' == envelope(suspended=None)
    assert head + b"}" == envelope(suspended=None, following=None)


@pytest.mark.parametrize("argument", ["thread_id", "suspended_node", "next_node"])
@pytest.mark.parametrize("wrong", [Word("t"), Word("a"), Word("b"), 7, [], "\ud800", "nul\0"])
def test_what_is_no_plain_text_is_refused_by_name_although_its_equal_was_seen(argument, wrong):
    envelope()

    with pytest.raises(InvalidInputError) as caught:
        envelope(**{{"suspended_node": "suspended", "next_node": "following"}.get(argument, argument): wrong})
    assert argument == caught.value.argument


@pytest.mark.parametrize("wrong", ["running", Word("running"), None])
def test_a_status_is_a_member(wrong):
    with pytest.raises(InvalidInputError) as caught:
        envelope(status=wrong)
    assert "status" == caught.value.argument
