"""A client of the service, while the service is killed and started again.

Starts `service.py` under uvicorn as a process of its own, talks to it over HTTP, kills it while transfers wait, and
checks every answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

HERE = Path(__file__).resolve().parent
SERVE = [sys.executable, "-m", "uvicorn", "--factory", "service:create_app", "--app-dir", str(HERE), "--port", "0"]


@contextmanager
def service(storage: str) -> Iterator[httpx2.Client]:
    """Serve until the block is left; then the process is killed."""
    with subprocess.Popen(  # noqa: S603  # our own interpreter, our own arguments
        [*SERVE, "--no-use-colors"],
        env=os.environ | {"STRATA_STORAGE": storage},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            log = ""
            for line in process.stderr:
                log += line
                if found := re.search(r"running on (http://\S+)", line):
                    break
            else:
                sys.exit(f"The service does not start:\n{log}")
            with httpx2.Client(base_url=found[1], timeout=30) as client:
                yield client
        finally:
            process.kill()


def freeze(client: httpx2.Client, suffix: str) -> None:
    print("1. Two transfers are submitted.  Each is prepared, and waits: 202.")
    for name, beneficiary, amount in [("acme", "Acme Corp", "4200.50"), ("globex", "Globex", "98000.00")]:
        new = {"id": name + suffix, "beneficiary": beneficiary, "amount": amount}
        expect(client.post("/transfers", json=new), 202, f"interrupted, {amount} to {beneficiary}, awaiting approval")

    print("\n2. The client has not heard the answer and submits the first again: 409, there is one of it.")
    again = {"id": f"acme{suffix}", "beneficiary": "Acme Corp", "amount": "4200.50"}
    expect(client.post("/transfers", json=again), 409, "thread_exists")


def answer(client: httpx2.Client, suffix: str) -> None:
    acme, globex = f"/transfers/acme{suffix}", f"/transfers/globex{suffix}"
    ann, bob = {"X-Forwarded-User": "ann@acme.io"}, {"X-Forwarded-User": "bob@acme.io"}

    print("\n3. The service was killed; another process serves the same store.  The transfers still wait.")
    expect(client.get(acme), 200, "interrupted, 4200.50 to Acme Corp, awaiting approval")
    expect(client.get(globex), 200, "interrupted, 98000.00 to Globex, awaiting approval")

    print("\n4. A correction that does not fit is refused: 422.  The transfer still waits.")
    wrong = {"approve": True, "overrides": {"amount": "a lot"}}
    expect(client.post(f"{acme}/answer", json=wrong, headers=ann), 422, "invalid_signal")
    expect(client.get(acme), 200, "interrupted, 4200.50 to Acme Corp, awaiting approval")

    print("\n5. Two reviewers approve at once, with a correction that fits: one gets 200, the other 409.")
    right = {"approve": True, "overrides": {"amount": "4150.25"}}
    first, second = asyncio.run(both(client.base_url, f"{acme}/answer", right, ann, bob))
    winner, loser = (first, second) if first.status_code == 200 else (second, first)
    expect(winner, 200, "completed, 4150.25 to Acme Corp, sent")
    expect(loser, 409, "already_resumed")

    print("\n6. The other transfer is rejected.")
    expect(client.post(f"{globex}/answer", json={"approve": False}, headers=bob), 200, "cancelled by bob@acme.io")

    print("\n7. Nobody can answer what is not there: 404.")
    expect(client.post("/transfers/initech/answer", json={"approve": True}, headers=ann), 404, "not_found")


async def both(
    server: httpx2.URL, url: str, body: object, *people: dict[str, str]
) -> tuple[httpx2.Response, httpx2.Response]:
    async with httpx2.AsyncClient(base_url=server, timeout=30) as client:
        first, second = (client.post(url, json=body, headers=person) for person in people)
        return await asyncio.gather(first, second)


def expect(response: httpx2.Response, code: int, expected: str) -> None:
    request, body = response.request, response.json()
    shown = "{code}" if "detail" in body else "{state}, {amount} to {beneficiary}, {status}"
    told = shown.format_map(body.get("detail", body))
    print(f"   {request.method:4} {request.url.path}: {response.status_code} {told}", flush=True)
    if response.status_code != code or expected not in told:
        sys.exit(f"The demo failed; expected: {code} {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A client of the service, while that is killed and started again.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the threads stay, each time under new IDs.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        storage = storage or str(Path(folder) / "transfers.db")
        with service(storage) as client:
            freeze(client, suffix)
        with service(storage) as client:
            answer(client, suffix)
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
