"""A process is killed in the middle of a step, and another one finishes what it had begun.

The two are `worker.py`, which stands beside this script.  The kill is real, and comes at the worst moment: the card has
been charged, and nobody has written that down.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from worker import World

from strata_core import open_store

WORKER = Path(__file__).resolve().parent / "worker.py"


def demonstrate(storage: str, world: World, suffix: str) -> None:
    order = f"order-1{suffix}"
    worker = [sys.executable, str(WORKER), "--storage", storage, "--world", str(world.path)]
    worker += ["--graph", f"durable-execution{suffix}"]  # in a store of yours, nobody else's threads are recovered

    print("1. A process begins an order.  It is killed when it has charged the card, before it can save that.")
    with subprocess.Popen([*worker, "start", order], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # ours
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        process.kill()
    expect(line, "charged, and about to commit that")
    expect(f"exit code {process.returncode}", f"exit code {-signal.SIGKILL}")

    print("\n2. The thread says that it runs, at the last step that was committed.")
    expect(asyncio.run(log(storage, order))[-1:], "#1 running: Reserve is done, Charge is next")

    print("\n3. When the lease of the dead has run out, another process finds the thread and finishes it.")
    done = subprocess.run([*worker, "recover"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    expect(done.stdout.strip() or done.stderr, f"{order} completed: reserved, charged, shipped")

    print("\n4. The log is made of whole steps, and tells who took over.")
    expected = [
        "#0 running: nothing is done, Reserve is next",
        "#1 running: Reserve is done, Charge is next",
        "#2 running: Reserve is done, Charge is next (recovered)",
        "#3 running: Charge is done, Ship is next",
        "#4 completed: Ship is done",
    ]
    expect(asyncio.run(log(storage, order)), *expected)

    print("\n5. Only the step that was killed ran twice, with the same key: a bank that knows keys charges once.")
    for step, expected_calls in [("reserve", 1), ("charge", 2), ("ship", 1)]:
        keys = [key for what, key in world.calls() if what == step]
        expect(f"{step}: {len(keys)} x, {len(set(keys))} key", f"{step}: {expected_calls} x, 1 key")


async def log(storage: str, thread_id: str) -> list[str]:
    lines = []
    async with open_store(storage, read_only=True) as store:
        for entry in (await store.get_log(thread_id)).entries:
            at = entry.checkpoint
            following = "" if at.next_node is None else f", {at.next_node} is next"
            recovered = " (recovered)" if "strata.recovered_by" in at.metadata else ""
            lines.append(
                f"#{entry.sequence} {at.state}: {at.suspended_node or 'nothing'} is done{following}{recovered}"
            )
    return lines


def expect(shown: str | list[str], *expected: str) -> None:
    lines = [shown] if isinstance(shown, str) else shown
    for line in lines:
        print(f"   {line}", flush=True)
    if lines != list(expected):
        sys.exit(f"The demo failed; expected: {' / '.join(expected)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A process is killed in the middle of a step; another finishes it.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    if storage is not None and storage.startswith("memory:"):
        parser.error("a memory store lives in one process; give --storage one that two processes can open")
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the threads stay, each time under new IDs.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        storage = storage or str(Path(folder) / "orders.db")
        demonstrate(storage, World(Path(folder) / "world.jsonl"), suffix)
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
