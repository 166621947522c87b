"""Runs the first command of README.md in a clean copy of the repository, as a newcomer does, and checks what it shows.

It runs twice: the command must also work where `.venv` exists already.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHOWN = [
    "wire-acme: waits at PrepareWireTransfer, goes on at ExecuteWireTransfer",
    "$ strata thread list --status interrupted",
    "refused",
    "sent (TX-0001), 4150.25 EUR",
    "cancelled by cfo@acme.io",
    "[running] node=- -> PrepareWireTransfer",
    "amount: 4200.5 -> 4150.25",
    "purged 2 finished threads",
    "Every step came out as expected.",
]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".tox", "__pycache__", "*.egg-info", ".*_cache", "dist", "build")


def copy_to(target: Path) -> None:
    """Copy what git knows or would add; without git, everything but what tools leave behind."""
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(listing, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(ROOT, target, ignore=LEFT_OUT)
        return
    for name in filter(None, done.stdout.decode().split("\0")):
        source = ROOT / name
        if source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def command() -> str:
    """Return the command below the line `<!-- quickstart -->`."""
    found = re.search(
        r"^<!-- quickstart -->\n+```\w*\n(.+?)\n```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise SystemExit("README.md has no command below the line <!-- quickstart -->")
    return found[1]


def main(folder: Path) -> int:
    """Run the command twice in a copy below `folder`; return an exit code."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy_to(copy)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    for _ in range(2):
        print(f"+ {command()}", flush=True)
        done = subprocess.run(
            ["sh", "-ec", command()], cwd=copy, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=False
        )
        print(done.stdout, flush=True)
        missing = [line for line in SHOWN if line not in done.stdout]
        if done.returncode or missing:
            print(f"exit code {done.returncode}; not shown: {missing}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
