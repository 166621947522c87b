"""The foreign half: an engine that has never heard of Strata's code, only of the format in `schema/README.md`.

It uses the standard library alone, and reads the SQLite file itself.  What it writes are records, one a line on its
output, each after the sequence of the checkpoint that it must follow (a dash: there is none); it goes on when it is
told ``saved`` on its input.

python -I -S foreign.py vectors FOLDER      read and write the golden records, read the golden rows
python -I -S foreign.py begin ID            begin a transfer, and stop at its boundary
python -I -S foreign.py answer FILE ID      approve a transfer that waits in the file, with a corrected amount
python -I -S foreign.py log FILE ID         tell what the file holds of a transfer
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

Record = dict[str, Any]
NEWEST = (1, 9)
WRITTEN = "1.7.0"
KEYS = (
    "schema_version",
    "thread_id",
    "status",
    "created_at",
    "suspended_node",
    "next_node",
    "frozen_state",
    "metadata",
    "nested",
    "decision",
    "wait",
    "graph",
    "resumed_at",
)
"""In the order in which a writer writes them."""
GRAPH = {"id": "wire-transfer", "version": "1"}


class ForeignError(Exception):
    """This half cannot go on."""


def read_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ForeignError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_record(text: str) -> Record:
    return checked(read_json(text))


def checked(record: Record) -> Record:
    check_version(record["schema_version"])
    if unknown := record.keys() - set(KEYS):
        raise ForeignError(f"a record has no {min(unknown)}")
    present = without_nothing(record, "metadata")
    for key in {"decision", "wait"} & present.keys():
        present[key] = without_nothing(present[key], "overrides")
    if "nested" in present:
        present["nested"] = checked(present["nested"])
    return present


def without_nothing(members: Record, may_be_empty: str) -> Record:
    """Leave out what says nothing: null in an optional member, and an object without members in this one."""
    return {key: value for key, value in members.items() if value is not None and (key, value) != (may_be_empty, {})}


def write_record(record: Record) -> str:
    return write_json(in_order(record))


def in_order(record: Record) -> Record:
    whole = record | {"schema_version": WRITTEN}
    if "nested" in whole:
        whole["nested"] = in_order(whole["nested"])
    return {key: whole[key] for key in KEYS if key in whole}


def check_version(version: str) -> tuple[int, int]:
    major, minor, _ = map(int, version.split("."))
    if not (1, 0) <= (major, minor) <= NEWEST:
        raise ForeignError(f"schema_version {version} is newer than {NEWEST[0]}.{NEWEST[1]}")
    return major, minor


def read_rows(rows: Iterable[tuple[int, str, str, str]], blobs: Mapping[str, bytes]) -> list[Record]:
    """Decode stored rows, oldest first, beginning with a whole one.

    Args:
        rows: Sequence, schema_version, envelope and body of each.
        blobs: What is offloaded, by its digest.
    """
    records = []
    state: dict[str, Any] = {}
    digests: dict[str, str] = {}  # of the keys whose values lie in a blob
    before: int | None = None
    for sequence, version, envelope, text in rows:
        body = read_json(text)
        if check_version(version) < (1, 8):
            body = {"whole": body}
        if "whole" in body:
            state, digests = dict(body["whole"]), {}
        else:
            if before is None or body["base"] != before:
                raise ForeignError(f"row {sequence} builds on {body['base']}, and row {before} is before it")
            for key in body["unset"]:
                del state[key]
            state |= body["set"]
            digests = {key: at for key, at in digests.items() if key not in {*body["unset"], *body["set"]}}
        digests |= body.get("blobs", {})
        whole = state | {key: read_blob(digest, blobs) for key, digest in digests.items()}
        records.append(read_record(envelope) | {"frozen_state": whole})
        before = sequence
    return records


def read_blob(digest: str, blobs: Mapping[str, bytes]) -> Any:
    content = blobs[digest]
    if digest != f"sha256:{hashlib.sha256(content).hexdigest()}":
        raise ForeignError(f"blob {digest} is another one")
    return read_json(content.decode())


def read_log(file: str, thread_id: str) -> list[Record]:
    """Read a thread from the views that a SQLite store offers to everybody."""
    database = sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True)
    try:
        rows = database.execute(
            "SELECT sequence, schema_version, envelope, frozen_state FROM checkpoints"
            " WHERE thread_id = ? ORDER BY sequence",
            [thread_id],
        ).fetchall()
        blobs = database.execute("SELECT hash, content FROM checkpoint_blobs WHERE thread_id = ?", [thread_id])
        return read_rows(rows, dict(blobs.fetchall()))
    finally:
        database.close()


@dataclasses.dataclass(frozen=True)
class WireTransfer:
    """The state, defined for the second time: nothing compares this class to the one of the Strata half."""

    beneficiary: str
    amount: float
    currency: str
    invoice_generated: bool = False
    approved_by: str | None = None


def prepare(transfer: WireTransfer) -> WireTransfer:
    return dataclasses.replace(transfer, invoice_generated=True)


def execute(transfer: WireTransfer, reviewer: str) -> WireTransfer:
    return dataclasses.replace(transfer, approved_by=reviewer)


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # noqa: UP017  # as old Pythons spell it


def hand_over(record: Record, after: int | None) -> None:
    """Write a record, and wait until it is saved: nothing is done before that."""
    line = f"{'-' if after is None else after} {write_record(record)}\n"
    sys.stdout.buffer.write(line.encode())  # UTF-8, whatever the locale
    sys.stdout.flush()
    if (answer := sys.stdin.readline().strip()) != "saved":
        raise ForeignError(f"the record was not saved: {answer or 'nobody answers'}")


def begin(thread_id: str) -> None:
    transfer = prepare(WireTransfer("Globex", 98_000.5, "EUR"))
    record = {
        "thread_id": thread_id,
        "status": "interrupted",
        "created_at": now(),
        "suspended_node": "PrepareWireTransfer",
        "next_node": "ExecuteWireTransfer",
        "frozen_state": dataclasses.asdict(transfer),
        "graph": GRAPH,
    }
    hand_over(record, None)


def answer(file: str, thread_id: str) -> None:
    log = read_log(file, thread_id)
    waiting = log[-1]
    if (waiting["status"], waiting.get("graph")) != ("interrupted", GRAPH) or "resumed_at" in waiting:
        raise ForeignError(f"{thread_id} does not wait for this engine")
    overrides = {"amount": 4150.25}  # keyed by the JSON name of the field
    decision = {
        "boundary": waiting["suspended_node"],
        "approved": True,
        "reviewer": "jdoe@acme.io",
        "overrides": overrides,
        "decided_at": now(),
    }
    hand_over(waiting | {"decision": decision, "resumed_at": now()}, len(log) - 1)
    transfer = execute(WireTransfer(**waiting["frozen_state"] | overrides), "jdoe@acme.io")
    completed = {key: value for key, value in waiting.items() if key != "next_node"} | {
        "status": "completed",
        "created_at": now(),
        "suspended_node": waiting["next_node"],
        "frozen_state": dataclasses.asdict(transfer),
        "decision": decision,
    }
    hand_over(completed, len(log))


def show_log(file: str, thread_id: str) -> None:
    for record in read_log(file, thread_id):
        state = WireTransfer(**record["frozen_state"])
        decision = record.get("decision")
        print(
            f"{'resumed' if 'resumed_at' in record else record['status']} at {record['suspended_node']}: "
            f"{state.amount:.2f} {state.currency} to {state.beneficiary}"
            + (f", {decision['reviewer']} set {write_json(decision.get('overrides', {}))}" if decision else "")
        )


def check_vectors(folder: str) -> None:
    for vector in read_json(Path(folder, "records.json").read_text(encoding="utf-8"))["vectors"]:
        for text in [vector["text"], *vector.get("also", [])]:
            if write_record(read_record(text)) != vector["text"]:
                raise ForeignError(f"golden record {vector['name']} comes out differently")
    for vector in read_json(Path(folder, "rows.json").read_text(encoding="utf-8"))["vectors"]:
        rows = [(row["sequence"], row["schema_version"], row["envelope"], row["body"]) for row in vector["rows"]]
        blobs = {digest: text.encode() for digest, text in vector["blobs"].items()}
        if [write_record(record) for record in read_rows(rows, blobs)][-len(vector["records"]) :] != vector["records"]:
            raise ForeignError(f"golden rows {vector['name']} come out differently")
    print("every golden record comes out byte for byte, and every golden row decodes")


def main() -> None:
    parser = argparse.ArgumentParser(description="An engine of the standard library alone.")
    commands = parser.add_subparsers(required=True)
    for name, action, arguments in [
        ("vectors", check_vectors, ["folder"]),
        ("begin", begin, ["thread_id"]),
        ("answer", answer, ["file", "thread_id"]),
        ("log", show_log, ["file", "thread_id"]),
    ]:
        command = commands.add_parser(name)
        for argument in arguments:
            command.add_argument(argument)
        command.set_defaults(action=action)
    given = vars(parser.parse_args())
    action = given.pop("action")
    try:
        action(**given)
    except ForeignError as error:
        sys.exit(f"foreign: {error}")


if __name__ == "__main__":
    main()
