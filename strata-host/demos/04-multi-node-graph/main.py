"""An article goes through several nodes, each of which changes the one state that they share.

Shows edges, a conditional edge that leads back, and a log in which every node is one whole step.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import attrs

from strata_core import (
    Cancelled,
    CheckpointPolicy,
    Completed,
    Failed,
    GraphIdentity,
    Interrupted,
    RunResult,
    StateGraph,
    open_store,
)

FACTS = {"tides": ("the moon pulls", "the sun pulls less")}


@attrs.frozen
class Article:
    topic: str
    facts: tuple[str, ...] = ()
    text: str = ""
    drafts: int = 0
    remarks: str | None = None


def research(article: Article) -> Article:
    return attrs.evolve(article, facts=FACTS[article.topic])


def write(article: Article) -> Article:
    # The first draft leaves out what the editor will miss.
    told = article.facts if article.remarks else article.facts[:1]
    return attrs.evolve(article, text=f"{article.topic}: {', '.join(told)}", drafts=article.drafts + 1)


def edit(article: Article) -> Article:
    missing = [fact for fact in article.facts if fact not in article.text]
    return attrs.evolve(article, remarks=f"missing: {', '.join(missing)}" if missing else None)


def publish(article: Article) -> Article:
    return attrs.evolve(article, text=article.text.capitalize() + ".")


def after_edit(article: Article) -> str:
    return "Publish" if article.remarks is None else "Write"


graph = (
    StateGraph(Article)
    .add_node("Research", research)
    .add_edge("Research", "Write")
    .add_node("Write", write)
    .add_edge("Write", "Edit")
    .add_node("Edit", edit)
    .add_conditional_edge("Edit", after_edit, ["Write", "Publish"])
    .add_node("Publish", publish)
    .compile(identity=GraphIdentity("multi-node-graph", "1"), checkpointing=CheckpointPolicy.EVERY_NODE)
)


async def demonstrate(storage: str, suffix: str) -> None:
    thread_id = f"article-1{suffix}"
    first = Article("tides")
    async with open_store(storage) as store:
        print("1. Four nodes work on one article.  The editor sends it back once.")
        result = await graph.run(thread_id, first, store, if_exists="error")
        expect(told(result), f"{thread_id} completed: Tides: the moon pulls, the sun pulls less. (2 drafts)")

        print("\n2. Each node returned a whole state, so that each row of the log is a whole step.  What each changed:")
        log = [entry.checkpoint for entry in (await store.get_log(thread_id)).entries]
        steps = []
        for before, after in pairwise(log):
            changed = [key for key, value in after.frozen_state.items() if value != before.frozen_state[key]]
            steps.append(f"{after.suspended_node}: {', '.join(changed) or 'nothing'}")
        expect("\n   ".join(steps), "\n   ".join(STEPS))

        print("\n3. A node never changes the state it is given: the first one is as it was, here and in the store.")
        expect(f"{len(first.facts)} facts, {first.drafts} drafts", "0 facts, 0 drafts")
        expect(str(log[0].frozen_state["text"] == first.text), "True")


STEPS = [
    "Research: facts",
    "Write: text, drafts",
    "Edit: remarks",
    "Write: text, drafts",
    "Edit: remarks",
    "Publish: text",
]


def told(result: RunResult[Article]) -> str:
    match result:
        case Completed(thread_id, article):
            return f"{thread_id} completed: {article.text} ({article.drafts} drafts)"
        case Interrupted(thread_id, node):
            return f"{thread_id} waits at {node}"
        case Failed(thread_id, code, _, node, detail):
            return f"{thread_id} {code} at {node}: {detail}"
        case Cancelled(thread_id, reason):
            return f"{thread_id} cancelled: {reason}"


def expect(shown: str, expected: str) -> None:
    print(f"   {shown}", flush=True)
    if shown != expected:
        sys.exit(f"The demo failed; expected: {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description="An article goes through several nodes, each of which changes it.")
    parser.add_argument("--storage", metavar="URL", help="path or URL of a store (default: a temporary SQLite file)")
    storage = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        # In a store of yours the thread stays, each time under a new ID.
        suffix = "" if storage is None else f"-{secrets.token_hex(4)}"
        asyncio.run(demonstrate(storage or str(Path(folder) / "articles.db"), suffix))
    print("\nEvery step came out as expected.")


if __name__ == "__main__":
    main()
