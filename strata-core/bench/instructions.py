"""How many instructions a save takes, counted by callgrind: a figure that varies less than a time.

The ten-node runs of the benchmarks, fifty at once, are counted for one round and for three.  The difference is 100 runs
of 11 saves; starting the interpreter, importing and opening are in both.
Count on a quiet machine all the same: a store that waits for a thread of its own looks more often while others work.

    python strata-core/bench/instructions.py [--store sqlite|memory|floor|none] [--deltas] [--functions 30]
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import os
import re
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

PARALLEL, SAVES = 50, 11
FEW, MANY = 1, 3


async def work(store: str, deltas: bool, rounds: int, folder: Path) -> None:
    """Do the counted work."""
    import strata_peer
    from databases import Sqlite
    from harness import at_once

    from strata_core import Deltas, Offload, open_store

    async with AsyncExitStack() as stack:
        if store == "floor":
            run = (await Sqlite().floor(stack, folder)).run
        else:
            kept = None
            options: dict[str, Any] = {"deltas": Deltas(), "offload": Offload()} if deltas else {}
            if store == "sqlite":
                kept = await Sqlite().strata(stack, folder, **options)
            elif store == "memory":
                kept = await stack.enter_async_context(open_store("memory://", **options))
            graph = strata_peer.build()

            async def run(thread: str) -> None:
                await strata_peer.run(graph, thread, kept)

        for turn in range(rounds):
            await at_once(PARALLEL, lambda number: run(f"{turn}-{number}"))


def count(store: str, deltas: bool, rounds: int, folder: Path) -> tuple[int, collections.Counter[str]]:
    """Return the instructions of some rounds, in all and by function of the interpreter and the libraries."""
    written = folder / f"callgrind.{rounds}"
    (place := folder / f"store.{rounds}").mkdir()
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={written}", sys.executable, __file__,
         "--store", store, *(["--deltas"] if deltas else []), "--work", str(rounds), "--folder", str(place)],
        check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": "0"},
    )  # fmt: skip
    listing = subprocess.run(
        ["callgrind_annotate", "--threshold=100", str(written)], check=True, capture_output=True, text=True
    ).stdout
    functions: collections.Counter[str] = collections.Counter()
    total = 0
    for line in listing.splitlines():
        if match := re.match(r"\s*([\d,]+) \([^)]*\)\s+(.*)", line):
            number = int(match[1].replace(",", ""))
            if match[2].startswith("PROGRAM TOTALS"):
                total = number
            else:
                functions[re.sub(r"'\d+| \[.*", "", match[2]).rpartition(":")[2]] += number
    return total, functions


def main() -> None:
    """Count, and print instructions a save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "memory", "floor", "none"], default="sqlite")
    parser.add_argument("--deltas", action="store_true", help="with deltas and offload")
    parser.add_argument("--functions", type=int, default=0, help="how many functions to list")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        asyncio.run(work(given.store, given.deltas, given.work, given.folder))
        return
    with tempfile.TemporaryDirectory(prefix="strata-count-") as folder:
        few, by_few = count(given.store, given.deltas, FEW, Path(folder))
        many, by_many = count(given.store, given.deltas, MANY, Path(folder))
    saves = (MANY - FEW) * PARALLEL * SAVES
    with_deltas = ", deltas and offload on" if given.deltas else ""
    print(f"{given.store}{with_deltas}: {(many - few) / saves:,.0f} instructions a save")
    by_many.subtract(by_few)
    for name, number in by_many.most_common(given.functions):
        print(f"{number / saves:>12,.0f} {name}")


if __name__ == "__main__":
    main()
