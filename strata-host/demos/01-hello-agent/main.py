"""The smallest typed state: an agent of one node says hello.

Shows what a state is, that its type is checked where it comes in and where it goes out, and what is kept of it.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys

import attrs

from strata_core import Cancelled, CheckpointPolicy, Completed, Failed, Interrupted, RunResult, StateGraph, open_store


@attrs.frozen
class Greeting:
    name: str
    text: str = ""


def greet(greeting: Greeting) -> Greeting:
    if greeting.name == "nobody":
        return attrs.evolve(greeting, text=404)  # type: ignore[arg-type]  # a mistake, to see what comes of it
    return attrs.evolve(greeting, text=f"Hello, {greeting.name}!")


graph = StateGraph(Greeting).add_node("Greet", greet).compile(checkpointing=CheckpointPolicy.EVERY_NODE)


async def demonstrate(storage: str, suffix: str) -> None:
    print("1. A node takes the state and returns the next one.  Nothing else is needed, not even a store.")
    result = await graph.run("hello", Greeting("Ada"))
    expect(told(result), "hello completed: Hello, Ada!")

    async with open_store(storage) as store:
        print("\n2. With a store every step is kept, as JSON under the names of the fields.")
        thread_id = f"hello{suffix}"
        expect(told(await graph.run(thread_id, Greeting("Grace"), store)), f"{thread_id} completed: Hello, Grace!")
        for entry in (await store.get_log(thread_id)).entries:
            kept = entry.checkpoint
            expected = {"name": "Grace", "text": "Hello, Grace!" if entry.sequence else ""}
            expect(
                f"#{entry.sequence} {kept.state}: {kept.frozen_state}",
                f"#{entry.sequence} {'completed' if entry.sequence else 'running'}: {expected}",
            )

        print("\n3. The type is kept too: a state that does not fit it is never saved, and the thread says why.")
        thread_id = f"mistake{suffix}"
        result = await graph.run(thread_id, Greeting("nobody"), store)
        expect(
            told(result),
            f"{thread_id} failed at Greet, invalid_state: InvalidInputError: state.text: must be a str, not int",
        )


def told(result: RunResult[Greeting]) -> str:
    match result:
        case Completed(thread_id, greeting):
            return f"{thread_id} completed: {greeting.text}"
        case Failed(thread_id, code, _, node, detail):
            return f"{thread_id} failed at {node}, {code}: {detail}"
        case Interrupted(thread_id, node):
            return f"{thread_id} waits at {node}"
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(shown: str, expected: str) -> None:
    print(f"   {shown}", flush=True)
    if shown != expected:
        sys.exit(f"The demo failed; expected: {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The smallest typed state: an agent of one node says hello.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: the memory of this process)")
    storage = parser.parse_args().storage
    # In a store of yours the threads stay, each time under new IDs.
    suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
    asyncio.run(demonstrate(storage or "memory://", suffix))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
