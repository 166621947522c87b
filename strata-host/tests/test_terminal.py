"""What a terminal gets: colour, width, nothing cut, nothing that acts."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios

import pytest

from strata_core.records import CheckpointStatus

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def terminal(process):
    """Run the command on a terminal of some width and return all it wrote."""

    def run(*args, width=80, **env):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        started = process(*args, stdout=child, stderr=child, env={"TERM": "xterm-256color"} | env)
        os.close(child)
        output = b""
        try:
            while piece := os.read(parent, 65536):
                output += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        finally:
            os.close(parent)
        started.wait()
        return output.decode().replace("\r\n", "\n")

    return run


@pytest.fixture(autouse=True)
def _threads(shelf, checkpoint):
    shelf.save(
        checkpoint("a" * 60, suspended_node="n" * 30),
        checkpoint("evil\x1b[2J\u202e", frozen_state={"key": "\x1b[2J"}),
        checkpoint("failed", status=CheckpointStatus.FAILED),
    )


@pytest.mark.parametrize(
    "command",
    [("thread", "list"), ("thread", "inspect", "failed"), ("checkpoint", "log", "failed"), ("plugins",)],
    ids=" ".join,
)
class TestColour:
    def test_a_terminal_gets_colour(self, terminal, command):
        assert _STYLE.search(terminal(*command)) is not None

    @pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
    def test_not_when_it_must_not_or_cannot(self, terminal, command, env):
        shown = terminal(*command, **env)

        assert "\x1b" not in shown
        assert "failed" in shown or "jsonl" in shown


@pytest.mark.parametrize("width", [30, 80, 200])
def test_a_listing_fits_the_width_and_loses_nothing(terminal, width):
    shown = _STYLE.sub("", terminal("thread", "list", width=width))

    assert all(len(line) <= width for line in shown.splitlines())
    assert 60 == sum(map(len, re.findall(r"\ba{2,}\b", shown)))
    assert "…" not in shown


@pytest.mark.parametrize("width", [40, 80])
def test_a_listing_that_is_too_wide_breaks_no_word_that_fits_a_line(terminal, width):
    shown = _STYLE.sub("", terminal("thread", "list", width=width))
    first = shown.split("\n\n")[0]

    assert [
        "thread:",
        "node:",
        "seq:",
        "state:",
        "waits for:",
        "lease:",
        "updated:",
    ] == re.findall(r"(?m)^[a-z ]+:", first)
    assert 3 == shown.count("interrupted") + shown.count("state:      failed")
    assert 3 == shown.count("2026-10-30T14:49:52Z")


def test_a_listing_that_fits_is_a_table(terminal):
    lines = _STYLE.sub("", terminal("thread", "list", width=200)).splitlines()

    assert ["THREAD", "NODE", "SEQ", "STATE", "WAITS", "FOR", "LEASE", "UPDATED"] == lines[0].split()
    assert 4 == len(lines)


def test_only_styles_reach_the_terminal(terminal):
    for command in (["thread", "list"], ["thread", "inspect", "evil\x1b[2J\u202e"]):
        shown = _STYLE.sub("", terminal(*command, width=200))

        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\\u001b[2J" in shown


def test_a_log_line_is_the_literal_line(terminal):
    shown = _STYLE.sub("", terminal("checkpoint", "log", "failed", width=20))

    assert shown == "#0    [failed] node=Draft -> Review at=2026-10-30T14:49:52Z\n"


def test_json_on_a_terminal_is_plain(terminal):
    assert "\x1b" not in terminal("thread", "list", "--json")
