"""Two engines share threads: what one pauses, the other resumes.

The other engine is `foreign.py`, which stands beside this script and runs as a process that can import nothing but the
standard library.  The two have the format in common, and nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs

from strata_core import (
    Cancelled,
    Completed,
    ConflictError,
    Failed,
    GraphIdentity,
    HumanSignal,
    Interrupted,
    NodeContext,
    Offload,
    RunResult,
    StateGraph,
    open_store,
)
from strata_core.codec import decode_record, dump_json, encode_record, load_json
from strata_core.ports import StorePorts

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parents[2] / "schema" / "vectors"
FOREIGN = [sys.executable, "-I", "-S", str(HERE / "foreign.py")]
"""Without site-packages, so that it could not import Strata if it wanted to."""


@attrs.frozen
class WireTransfer:
    """The state: its fields are spelled snake_case in JSON, as the two engines have agreed."""

    beneficiary: str
    amount: float
    currency: str
    invoice_generated: bool = False
    approved_by: str | None = None


def prepare(transfer: WireTransfer) -> WireTransfer:
    return attrs.evolve(transfer, invoice_generated=True)


def execute(transfer: WireTransfer, ctx: NodeContext[WireTransfer]) -> WireTransfer:
    assert ctx.decision is not None  # no route but an answer leads here
    return attrs.evolve(transfer, approved_by=ctx.decision.reviewer)


graph = (
    StateGraph(WireTransfer)
    .add_node("PrepareWireTransfer", prepare)
    .add_interrupt_boundary("PrepareWireTransfer")
    .add_edge("PrepareWireTransfer", "ExecuteWireTransfer")
    .add_node("ExecuteWireTransfer", execute)
    .compile(identity=GraphIdentity("wire-transfer", "1"), completion_record=True)
)


async def take_over(store: StorePorts, *command: str) -> list[str]:
    """Let the other engine work, append the records that it hands over, and return what became of each."""
    outcomes = []
    process = await asyncio.create_subprocess_exec(
        *FOREIGN, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, limit=1 << 24
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    while line := await process.stdout.readline():
        after, _, text = line.rstrip(b"\n").partition(b" ")
        checkpoint = decode_record(load_json(text))
        # The bytes are those that Strata would have written.
        expect(str(dump_json(encode_record(checkpoint)) == text), "True", quiet=True)
        try:
            await store.save_if_latest(checkpoint, None if after == b"-" else int(after))
        except ConflictError:
            outcomes.append(f"{checkpoint.state} refused")
            process.stdin.write(b"somebody else was faster\n")
        else:
            outcomes.append(f"{checkpoint.state} saved")
            process.stdin.write(b"saved\n")
        await process.stdin.drain()
    if trouble := (await process.stderr.read()).decode().strip():
        outcomes.append(trouble)
    await process.wait()
    return outcomes


def foreign(*command: str) -> str:
    done = subprocess.run([*FOREIGN, *command], capture_output=True, encoding="utf-8", check=False)  # noqa: S603  # ours
    return done.stdout.strip() or done.stderr.strip()


async def demonstrate(file: str) -> None:
    print("1. The other engine is held against the vectors that come with the format.")
    expect(
        foreign("vectors", str(VECTORS)), "every golden record comes out byte for byte, and every golden row decodes"
    )

    # Names are stored apart from the rows, which the other engine must be able to read as well.
    async with open_store(file, offload=Offload(threshold=8)) as store:
        print("\n2. Strata prepares a transfer, and stops.")
        result = await graph.run("wire-acme", WireTransfer("Acme Corp", 4200.50, "EUR"), store, if_exists="error")
        expect(told(result), "wire-acme waits at PrepareWireTransfer, then ExecuteWireTransfer")

        print("\n3. The other engine finds it in the file, approves it with another amount, and carries it out.")
        expect(", ".join(await take_over(store, "answer", file, "wire-acme")), "resumed saved, completed saved")
        result = await graph.resume("wire-acme", HumanSignal.approve("mallory"), store)
        expect(told(result), "wire-acme refused, already_resumed")

        print("\n4. The other engine prepares a transfer, and stops.")
        expect(", ".join(await take_over(store, "begin", "wire-globex")), "interrupted saved")
        lost = "interrupted refused, foreign: the record was not saved: somebody else was faster"
        expect(", ".join(await take_over(store, "begin", "wire-globex")), lost)

        print(
            "\n5. Strata approves it.  An override is keyed by the name in JSON; the other engine's own name is none."
        )
        answer = HumanSignal.approve("cfo@acme.io")
        result = await graph.resume("wire-globex", answer.with_override("Amount", 97_000.0), store)
        refused = "state.Amount: is no field of WireTransfer (did you mean 'amount'?)"
        expect(told(result), f"wire-globex refused, invalid_signal: {refused}")
        result = await graph.resume("wire-globex", answer.with_override("amount", 97_000.0), store)
        expect(told(result), "wire-globex completed: 97000.00 EUR to Globex, approved by cfo@acme.io")

        print("\n6. Both read both logs, and read the same.")
        for thread_id, expected in LOGS.items():
            print(f"   {thread_id}")
            expect(foreign("log", file, thread_id), "\n".join(expected))
            expect("\n".join(await log(store, thread_id)), "\n".join(expected), quiet=True)


LOGS = {
    "wire-acme": [
        "interrupted at PrepareWireTransfer: 4200.50 EUR to Acme Corp",
        'resumed at PrepareWireTransfer: 4200.50 EUR to Acme Corp, jdoe@acme.io set {"amount":4150.25}',
        'completed at ExecuteWireTransfer: 4150.25 EUR to Acme Corp, jdoe@acme.io set {"amount":4150.25}',
    ],
    "wire-globex": [
        "interrupted at PrepareWireTransfer: 98000.50 EUR to Globex",
        'resumed at PrepareWireTransfer: 98000.50 EUR to Globex, cfo@acme.io set {"amount":97000.0}',
        'completed at ExecuteWireTransfer: 97000.00 EUR to Globex, cfo@acme.io set {"amount":97000.0}',
    ],
}


async def log(store: StorePorts, thread_id: str) -> list[str]:
    lines = []
    for entry in (await store.get_log(thread_id)).entries:
        at = entry.checkpoint
        state = at.frozen_state
        line = f"{at.state} at {at.suspended_node}: {state['amount']:.2f} {state['currency']} to {state['beneficiary']}"
        if at.decision is not None:
            line += f", {at.decision.reviewer} set {dump_json(dict(at.decision.overrides)).decode()}"
        lines.append(line)
    return lines


def told(result: RunResult[WireTransfer]) -> str:
    match result:
        case Interrupted(thread_id, node, following):
            return f"{thread_id} waits at {node}, then {following}"
        case Completed(thread_id, transfer):
            amount = f"{transfer.amount:.2f} {transfer.currency} to {transfer.beneficiary}"
            return f"{thread_id} completed: {amount}, approved by {transfer.approved_by}"
        case Failed(thread_id, code, _, _, detail):
            return f"{thread_id} refused, {code}" + (f": {detail}" if detail else "")
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(shown: str, expected: str, *, quiet: bool = False) -> None:
    if not quiet:
        print("   " + shown.replace("\n", "\n   "), flush=True)
    if shown != expected:
        sys.exit(f"The demo failed: {shown}; expected: {expected}")


def main() -> None:
    argparse.ArgumentParser(description="Two engines share threads: what one pauses, the other resumes.").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(demonstrate(str(Path(folder) / "transfers.db")))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
