"""The command as a process of its own: pipes, signals, locales, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def _stuck(process, tmp_path):
    """Start a listing that never ends, and return it once it is under way."""
    asked = tmp_path / "asked"
    child = process("thread", "list", env={"STRATA_STORAGE": f"stuck:///{asked}"})
    deadline = time.monotonic() + 30
    while not asked.exists():
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return child


class TestPipes:
    def test_text_is_plain_and_the_same_whatever_the_width(self, shelf, process, checkpoint):
        shelf.save(checkpoint("t" * 400, metadata={"note": "n" * 400}))
        outputs = {
            process("thread", "inspect", "t" * 400, env={"COLUMNS": width, "FORCE_COLOR": "1"}).communicate()[0]
            for width in ("20", "80", "500")
        }
        (output,) = outputs

        assert b"\x1b" not in output
        assert b"t" * 400 in output
        assert b"n" * 400 in output

    def test_a_reader_that_goes_away_is_no_error(self, shelf, process, checkpoint):
        shelf.save(*(checkpoint(suspended_node="n" * 1000, frozen_state={"step": n}) for n in range(120)))
        for option in ([], ["--json"]):
            child = process("checkpoint", "log", "report-1", *option)
            child.stdout.readline()
            child.stdout.close()

            assert b"" == child.stderr.read()
            assert 0 == child.wait()

    def test_a_full_disk_is_an_error(self, shelf, process, checkpoint):
        shelf.save(checkpoint())
        with Path("/dev/full").open("wb") as full:
            child = process("thread", "list", stdout=full)
            error = child.communicate()[1]

        assert b"strata: input or output failed: No space left on device\n" == error
        assert 1 == child.returncode

    @pytest.mark.parametrize("option", [[], ["--json"]], ids=["text", "json"])
    def test_a_locale_that_cannot_write_an_id_still_gets_its_row(self, shelf, process, checkpoint, option):
        shelf.save(checkpoint("žluťoučký-日本"))
        child = process("thread", "list", *option, env={"PYTHONIOENCODING": "ascii"})
        output, error = child.communicate()

        assert (0, b"") == (child.returncode, error)
        assert rb"\u017elu" in output

    def test_a_closed_output_is_no_error(self, process):
        child = process(command=["sh", "-c", f"{sys.executable} -m strata_host thread list >&-"])

        assert b"" == child.communicate()[1]
        assert 0 == child.returncode

    def test_what_libraries_log_is_not_added_to_the_error(self, process):
        child = process("thread", "list", "--storage", "broken://user:s3cr3t-pw@host")
        _, error = child.communicate()

        assert error.startswith(b"strata: unexpected error: RuntimeError: ")
        assert (1, 1) == (child.returncode, error.count(b"\n"))
        assert b"s3cr3t" not in error


@pytest.fixture
def interruptible():
    """A shell starts what runs in its background so that it ignores interrupts, and so would what that starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestSignals:
    @pytest.mark.usefixtures("interruptible")
    def test_an_interrupt_ends_it_quietly_with_130(self, process, tmp_path):
        child = _stuck(process, tmp_path)
        child.send_signal(signal.SIGINT)

        assert (b"", b"") == child.communicate(timeout=30)
        assert 130 == child.returncode


class TestInstalled:
    def test_the_script_is_the_module(self, shelf, process, checkpoint):
        shelf.save(checkpoint("order-1"))
        script = Path(sys.executable).with_name("strata")
        done = subprocess.run(
            [script, "thread", "list"],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent / "plugins"), "STRATA_STORAGE": shelf.url},
            capture_output=True,
            check=True,
        )

        assert process("thread", "list").communicate()[0] == done.stdout
        assert b"order-1" in done.stdout

    @pytest.mark.parametrize(
        ("args", "code"),
        [
            (["thread", "list"], 0),
            (["thread", "inspect", "nobody"], 1),
            (["thread", "inspect"], 2),
            (["thread", "list", "--storage", "/nowhere/at/all.db"], 2),
        ],
    )
    def test_exit_codes_reach_the_shell(self, process, args, code):
        child = process(*args)
        _, error = child.communicate()

        assert code == child.returncode
        assert (code == 0) == (error == b"")
