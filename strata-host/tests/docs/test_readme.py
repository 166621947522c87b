"""The README at the root of the repository: every example runs, and both commands are what they are said to be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
EXAMPLES = {code.partition("\n")[0].removeprefix("# "): code for language, code in BLOCKS if language == "python"}


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A folder with every example of the README as the file that its first line names."""
    for name, code in EXAMPLES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


def test_every_python_example_names_its_file() -> None:
    assert {"approve.py", "dict_store.py", "test_dict_store.py"} == EXAMPLES.keys()


def test_the_first_example_prints_what_the_readme_says(examples: Path) -> None:
    shown = next(code for language, code in BLOCKS if language == "text")

    assert shown == run(examples, "approve.py")


def test_the_first_example_sends_nothing_twice_when_it_is_run_again(examples: Path) -> None:
    run(examples, "approve.py")
    again = run(examples, "approve.py").splitlines()

    assert ["thread_exists:"] * 2 == [line.split()[1] for line in again[:2]]
    assert ["already_resumed:"] * 3 == [line.split()[1] for line in again[2:]]


def test_the_threads_of_the_first_example_are_finished_and_can_be_purged(examples: Path) -> None:
    run(examples, "approve.py")
    listed = run(examples, "-m", "strata_host", "thread", "list", "--storage", "transfers.db", "--status", "completed")

    assert {"wire-1", "wire-2"} == {line.split()[0] for line in listed.splitlines()[1:]}


def test_the_commands_show_the_transfer_that_the_demo_left_waiting(examples: Path) -> None:
    run(examples, str(ROOT / "strata-host/demos/wire_transfer/main.py"), "--dir", "demo")
    commands = [
        line.split()[1:]
        for language, code in BLOCKS
        if language == "sh"
        for line in code.splitlines()
        if line.startswith(".venv/bin/strata ")
    ]

    shown = [run(examples, "-m", "strata_host", *command) for command in commands]

    assert len(commands) == 3
    assert all("wire-initech" in output for output in shown[:2])
    assert "[interrupted] node=PrepareWireTransfer -> ExecuteWireTransfer" in shown[2]


def test_the_store_of_the_readme_passes_the_suite_of_the_readme(examples: Path) -> None:
    report = run(examples, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_dict_store.py")

    assert re.search(r"\b\d{2,} passed", report)
    assert "failed" not in report


def test_the_automation_runs_the_test_command_of_the_readme(tmp_path: Path) -> None:
    """`.ci/run` extracts it; here it runs a README whose command only speaks."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    command = re.search(r"^<!-- tests -->\n\n```sh\n(.+)\n```$", README, re.MULTILINE)
    assert command is not None
    spoken = README.replace(command[1], "echo this is the command")
    (tmp_path / "README.md").write_text(spoken, encoding="utf-8")

    shown = subprocess.run(["sh", ".ci/run"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert ["+ echo this is the command", "this is the command"] == shown.splitlines()


def test_the_automation_is_executable() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
