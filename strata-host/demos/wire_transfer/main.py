"""Watch a wire transfer wait for a person, between processes that share nothing but a store.

Every command below runs as a process of its own, as a person would type it.  The demo checks what each one does, and
exits with 1 at the first that does something else.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


class UnexpectedError(Exception):
    """A step did not do what it should."""


class Terminal:
    """Types commands into a folder, shows them with what they print, and checks that."""

    def __init__(self, folder: Path, storage: str) -> None:
        self.folder = folder
        self._storage = storage
        self._steps = 0

    def strata(self, *args: str, shows: Sequence[str] = (), hides: Sequence[str] = (), code: int = 0) -> str:
        return self._run(["-m", "strata_host"], "strata", args, shows, hides, code)

    def app(self, *args: str, shows: Sequence[str] = (), code: int = 0) -> str:
        return self._run([str(HERE / "app.py")], "python app.py", args, shows, (), code)

    def say(self, text: str) -> None:
        self._steps += 1
        print(f"\n{self._steps}. {text}")

    def _run(
        self,
        program: Sequence[str],
        typed: str,
        args: Sequence[str],
        shows: Sequence[str],
        hides: Sequence[str],
        code: int,
    ) -> str:
        option = ["--storage", self._storage]
        args = [*args, *option] if typed == "strata" else [*option, *args]
        print(f"\n$ {typed} {shlex.join(args)}", flush=True)
        done = subprocess.run(  # noqa: S603  # our own interpreter, our own arguments
            [sys.executable, *program, *args],
            cwd=self.folder,
            env=os.environ | {"PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        print(done.stdout, end="", flush=True)
        if done.returncode != code:
            raise UnexpectedError(f"exit code {done.returncode} instead of {code}")
        for text in shows:
            check(text in done.stdout, f"{text!r} is not shown")
        for text in hides:
            check(text not in done.stdout, f"{text!r} is shown")
        return done.stdout


def check(holds: bool, problem: str) -> None:
    if not holds:
        raise UnexpectedError(problem)


def demonstrate(terminal: Terminal) -> None:
    print("What follows a $ runs as a process of its own: app.py, which stands beside this script, and strata.")
    waiting = ("thread", "list", "--status", "interrupted")

    terminal.say("A process prepares three transfers.  Each stops at its boundary, and the process is gone.")
    terminal.app("prepare", shows=[f"wire-{name}: waits at" for name in ("acme", "globex", "initech")])

    terminal.say("Another process sees what waits.")
    terminal.strata(*waiting, shows=["wire-acme", "wire-globex", "wire-initech", "PrepareWireTransfer"])
    terminal.strata(
        "thread", "inspect", "wire-acme", shows=["interrupted", "ExecuteWireTransfer", "wire-transfer@1", "4200.5"]
    )

    terminal.say("The reviewer corrects the amount, but as text.  That is refused, and the thread still waits.")
    terminal.app(
        "approve", "wire-acme", "--by", "jdoe@acme.io", "--set-text", "amount=4150.25", code=1, shows=["refused"]
    )
    terminal.strata(*waiting, shows=["wire-acme", "wire-globex", "wire-initech"])
    check(not (terminal.folder / "bank.jsonl").exists(), "money was sent")

    terminal.say("As a number it is accepted, and the transfer is sent.")
    terminal.app(
        "approve", "wire-acme", "--by", "jdoe@acme.io", "--set", "amount=4150.25", shows=["sent (TX-0001), 4150.25 EUR"]
    )
    payments = [json.loads(line) for line in (terminal.folder / "bank.jsonl").read_text().splitlines()]
    check(
        [(sent["to"], sent["amount"]) for sent in payments] == [("Acme Corp", 4150.25)], "the bank has something else"
    )

    terminal.say("It is answered once: a second answer is refused.")
    terminal.app("approve", "wire-acme", "--by", "mallory", code=1, shows=["refused"])

    terminal.say("Another transfer is rejected, and takes its reject route.")
    terminal.app("reject", "wire-globex", "--by", "cfo@acme.io", shows=["cancelled by cfo@acme.io"])

    terminal.say("What happened: every step is a row, none was overwritten.")
    log = terminal.strata("checkpoint", "log", "wire-acme", shows=["[running] node=- -> PrepareWireTransfer"])
    statuses = [line.split("[")[1].split("]")[0] for line in log.splitlines()]
    check(statuses == ["running", "interrupted", "running", "completed"], f"the log holds {statuses}")
    terminal.strata(
        "checkpoint", "log", "wire-globex", shows=["CancelWireTransfer"], hides=["node=ExecuteWireTransfer"]
    )

    terminal.say("What the reviewer changed, and where the thread stood after that.")
    terminal.strata(
        "checkpoint", "diff", "wire-acme", "--seq-a", "1", "--seq-b", "2", shows=["~ amount: 4200.5 -> 4150.25"]
    )
    terminal.strata(
        "checkpoint", "replay", "wire-acme", "--sequence", "2", shows=["jdoe@acme.io", "ExecuteWireTransfer", "4150.25"]
    )

    terminal.say("Finished threads are purged.  The one that waits is kept.")
    terminal.app("purge", shows=["purged 2 finished threads"])
    terminal.strata("thread", "list", shows=["wire-initech"], hides=["wire-acme", "wire-globex"])
    terminal.strata("thread", "inspect", "wire-acme", code=1, shows=["there is no thread wire-acme"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dir", type=Path, help="work here, and leave the files (default: a temporary folder)")
    parser.add_argument(
        "--storage", default="transfers.db", help="path or URL of an empty store (default: %(default)s)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any((folder / name).exists() for name in ("bank.jsonl", "transfers.db")):
            parser.error("--dir holds the files of an earlier run; give it another folder")
        try:
            demonstrate(Terminal(folder, args.storage))
        except UnexpectedError as error:
            print(f"\nThe demo failed: {error}", file=sys.stderr)
            return 1
    print("\nEvery step came out as expected.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
