"""One scenario is played on memory, SQLite, Postgres and Redis, and comes out the same on each.

The scenario is `scenario.py`, which stands beside this script.  Memory and SQLite need nothing; a server is used where
its URL is given.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
from pathlib import Path

from scenario import play

from strata_core import StrataError

EXPECTED = [
    "acme waits at Prepare",
    "globex waits at Prepare",
    "acme refused, thread_exists",
    "waiting: acme, globex",
    "acme refused, invalid_signal: state.amount: must be a number, not str",
    "acme completed: Acme, 4150.25, shipped, approved by ann@acme.io",
    "acme refused, already_resumed",
    "globex completed: Globex, 98000.00, cancelled",
    "acme #0: running -, 4200.5",
    "acme #1: interrupted Prepare, 4200.5",
    "acme #2: running Prepare, 4150.25",
    "acme #3: completed Ship, 4150.25",
    "a save that expects row 0 is refused",
]


def demonstrate(stores: dict[str, str | None], missing: dict[str, str]) -> None:
    """Play the scenario on each store.

    Args:
        stores: Their names and URLs; None where none was given.
        missing: For each name what gives it a URL.
    """
    print("The scenario:")
    for line in EXPECTED:
        print(f"   {line}")
    print("\nWhat came of it:")
    for name, url in stores.items():
        if url is None:
            print(f"   {name}: not played, as there is no URL ({missing[name]})")
            continue
        # The threads stay in the store, each time under new IDs.
        try:
            seen = asyncio.run(play(url, f"-{secrets.token_hex(4)}"))
        except StrataError as error:
            sys.exit(f"The demo failed on {name}: {type(error).__name__}: {error}")
        for line, expected in zip(seen, EXPECTED, strict=False):
            if line != expected:
                sys.exit(f"The demo failed on {name}: {line}; expected: {expected}")
        if len(seen) != len(EXPECTED):
            sys.exit(f"The demo failed on {name}: {len(seen)} lines; expected: {len(EXPECTED)}")
        print(f"   {name}: as above", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="One scenario, played on memory, SQLite, Postgres and Redis.")
    missing = {}
    for name in ("Postgres", "Redis"):
        option, variable = f"--{name.lower()}", f"STRATA_DEMO_{name.upper()}"
        missing[name] = f"{option} URL, or {variable}"
        parser.add_argument(
            option,
            metavar="URL",
            default=os.environ.get(variable),
            help=f"URL of a {name} store; best given in {variable} when it has a password",
        )
    parser.add_argument("--storage", metavar="URL", help="path or URL of one more store")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stores = {
            "memory": f"memory://{secrets.token_hex(4)}",
            "SQLite": str(Path(folder) / "orders.db"),
            "Postgres": args.postgres,
            "Redis": args.redis,
        }
        if args.storage is not None:
            stores["the store of --storage"] = args.storage
        demonstrate(stores, missing)
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
