"""Threads whose IDs, nodes, metadata and states attack whoever looks at them."""

from __future__ import annotations

import json

import pytest

from strata_core.records import GraphIdentity, HumanDecision, Wait, WaitKind

EVIL = "\x1b]0;owned\x07\x1b[2J\u202ex\r\n\u2028#9 \x9b[31m"
COMMANDS = [
    ("thread", "list"),
    ("thread", "inspect", EVIL),
    ("checkpoint", "log", EVIL),
    ("checkpoint", "diff", EVIL, "--seq-a", "0", "--seq-b", "1"),
    ("checkpoint", "replay", EVIL, "--sequence", "1"),
    ("checkpoint", "replay", EVIL, "--sequence", "5"),
    ("thread", "inspect", EVIL + "?"),
    ("thread", "list", "--meta", EVIL),
    ("thread", "list", "--cursor", EVIL),
    (EVIL,),
]


@pytest.fixture(autouse=True)
def _evil(shelf, checkpoint):
    saved = checkpoint(
        EVIL,
        frozen_state={EVIL: EVIL},
        suspended_node=EVIL,
        next_node=EVIL,
        metadata={EVIL: EVIL},
        graph=GraphIdentity(EVIL, EVIL),
        wait=Wait(WaitKind.EVENT, event_type=EVIL, on_timeout=EVIL),
    )
    decision = HumanDecision(EVIL, True, EVIL, saved.created_at, {EVIL: EVIL})
    shelf.save(saved, checkpoint(EVIL, frozen_state={EVIL: 1}, decision=decision, nested=saved))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]).encode("ascii", "replace"))
def test_text_reaches_no_terminal_as_it_is(look, command):
    result = look(*command, code=None)

    assert result.exit_code in {0, 1, 2}
    assert set(result.output) <= {"\n"} | {c for c in result.output if c.isprintable()}
    assert len(result.stderr.splitlines()) <= 1


def test_json_is_ascii_and_gives_the_text_back(look_json):
    (thread,) = look_json("thread", "list")["threads"]

    assert thread["thread_id"] == EVIL
    assert look_json("thread", "inspect", EVIL)["checkpoint"]["nested"]["frozen_state"] == {EVIL: EVIL}


def test_a_log_line_stays_one_line(look):
    assert 2 == len(look("checkpoint", "log", EVIL).stdout.splitlines())
    assert json.dumps(EVIL)[1:20] in look("checkpoint", "log", EVIL).stdout
