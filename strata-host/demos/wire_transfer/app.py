"""The application: each call is a process of its own that knows nothing but the store.

python app.py prepare
python app.py approve ID --by WHO [--set FIELD=JSON] [--set-text FIELD=TEXT]
python app.py reject ID --by WHO
python app.py purge
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from transfers import Bank, WireTransfer, wire_transfer_graph  # type: ignore[import-not-found]  # beside this script

from strata_core import Completed, Failed, HumanSignal, Interrupted, RunResult, ThreadQuery, open_store

TRANSFERS = {
    "wire-acme": WireTransfer("Acme Corp", 4200.50),
    "wire-globex": WireTransfer("Globex", 98_000.00),
    "wire-initech": WireTransfer("Initech", 310.00),
}


async def prepare(args: argparse.Namespace) -> int:
    graph = wire_transfer_graph(Bank(args.ledger))
    async with open_store(args.storage) as store:
        if (await store.list_threads(ThreadQuery(limit=1))).threads:
            print("refused: the store holds threads, and `purge` would take them too; give the demo an empty one")
            return 1
        results = [
            await graph.run(thread_id, transfer, store, metadata={"desk": "payments"})
            for thread_id, transfer in TRANSFERS.items()
        ]
    return max(map(report, results))


async def answer(args: argparse.Namespace) -> int:
    signal = HumanSignal.approve(args.by) if args.command == "approve" else HumanSignal.reject(args.by)
    for pair in args.set:
        field, _, value = pair.partition("=")
        signal = signal.with_override(field, json.loads(value))
    for pair in args.set_text:
        field, _, text = pair.partition("=")
        signal = signal.with_field_override(field, text)
    async with open_store(args.storage) as store:
        return report(await wire_transfer_graph(Bank(args.ledger)).resume(args.id, signal, store))


async def purge(args: argparse.Namespace) -> int:
    just_ahead = datetime.now(UTC) + timedelta(seconds=1)  # so that what has just finished counts as old
    async with open_store(args.storage) as store:
        print(f"purged {await store.purge(just_ahead)} finished threads")
    return 0


def report(result: RunResult[WireTransfer]) -> int:
    match result:
        case Interrupted():
            print(f"{result.thread_id}: waits at {result.suspended_node}, goes on at {result.next_node}")
        case Completed():
            print(f"{result.thread_id}: {result.state.status}, {result.state.amount:.2f} {result.state.currency}")
        case Failed():
            print(f"{result.thread_id}: refused: {result.message}")
            if result.detail is not None:
                print(f"  {result.detail}")
            return 1
        case _:
            print(f"{result.thread_id}: {result.reason}")
            return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Wire transfers that wait for a person.")
    parser.add_argument("--storage", default="transfers.db", help="path or URL of the store")
    parser.add_argument("--ledger", type=Path, default=Path("bank.jsonl"), help="the file that is the bank")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare").set_defaults(action=prepare)
    for name in ("approve", "reject"):
        command = commands.add_parser(name)
        command.add_argument("id")
        command.add_argument("--by", required=True)
        command.add_argument("--set", action="append", default=[], metavar="FIELD=JSON")
        command.add_argument("--set-text", action="append", default=[], metavar="FIELD=TEXT")
        command.set_defaults(action=answer)
    commands.add_parser("purge").set_defaults(action=purge)
    args = parser.parse_args()
    code: int = asyncio.run(args.action(args))
    return code


if __name__ == "__main__":
    sys.exit(main())
