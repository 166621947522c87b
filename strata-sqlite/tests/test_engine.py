"""The engine on SQLite: the documented runs, and answers that race from many processes."""

import asyncio
import gc
import json
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
from sqlite_support import TESTS, query, start

from strata_core import (
    CheckpointPolicy,
    CompiledGraph,
    Completed,
    Deltas,
    FileSystemBlobStore,
    HumanSignal,
    Interrupted,
    Offload,
    StateGraph,
    open_store,
)

sys.path.insert(0, str(TESTS / "programs"))
from wire import Wire, build  # shared with the programs

EVIDENCE = "sha256:55bb3c98333f4f20aa23ec49458f604541b9b5413cdf3b90ad17ceae5653b036"


@attrs.frozen
class Report:
    evidence: str
    step: int


def report_graph() -> CompiledGraph[Report]:
    def gather(state: Report) -> Report:
        return attrs.evolve(state, evidence="x" * 100_000)

    def work(state: Report) -> Report:
        return attrs.evolve(state, step=state.step + 1)

    graph = StateGraph(Report).add_node("Gather", gather)
    for source, target in (("Gather", "Analyse"), ("Analyse", "Draft"), ("Draft", "Review")):
        graph.add_node(target, work).add_edge(source, target)
    return graph.compile(checkpointing=CheckpointPolicy.EVERY_NODE)


def run_report(path: Path, offload: Offload) -> int:
    """Run the documented graph and return how many bytes of JSON its loaded state has."""

    async def main() -> int:
        async with open_store(path, deltas=Deltas(), offload=offload) as store:
            await report_graph().run("report-1", Report("", 0), store)
            latest = await store.load("report-1")
            assert latest is not None
            return len(json.dumps(dict(latest.checkpoint.frozen_state), separators=(",", ":")))

    return asyncio.run(main())


def test_the_documented_report_stores_its_evidence_once_and_its_counter_alone(tmp_path: Path) -> None:
    path = tmp_path / "reports.sqlite"

    assert 100_024 == run_report(path, Offload())
    rows = query(
        path,
        "SELECT sequence, status, schema_version, length(frozen_state) FROM checkpoints WHERE thread_id = 'report-1';",
    )
    assert [
        (0, "running", "1.7.0"),
        (1, "running", "1.9.0"),
        (2, "running", "1.8.0"),
        (3, "running", "1.8.0"),
        (4, "completed", "1.9.0"),
    ] == [row[:3] for row in rows]
    assert [(EVIDENCE, 100_002)] == query(path, "SELECT hash, length(content) FROM checkpoint_blobs;")
    bodies = [body for (body,) in query(path, "SELECT frozen_state FROM checkpoints ORDER BY sequence")]
    assert '{"evidence":"","step":0}' == bodies[0]
    assert [{"step": 1}, {"step": 2}] == [json.loads(body)["set"] for body in bodies[2:4]]


def test_the_documented_report_keeps_one_file_in_a_blob_folder(tmp_path: Path) -> None:
    path, folder = tmp_path / "reports.sqlite", tmp_path / "blobs"

    assert 100_024 == run_report(path, Offload(blobs=FileSystemBlobStore(folder)))
    assert [Path("7265706f72742d31", EVIDENCE.removeprefix("sha256:"))] == [
        file.relative_to(folder) for file in folder.rglob("*") if file.is_file()
    ]
    assert [] == query(path, "SELECT hash FROM checkpoint_blobs")


@pytest.mark.parametrize(
    ("policy", "purged"), [(CheckpointPolicy.EVERY_NODE, 3), (CheckpointPolicy.BOUNDARIES, 0)], ids=str
)
def test_the_documented_purge_takes_what_is_finished_and_keeps_what_waits(
    tmp_path: Path, policy: CheckpointPolicy, purged: int
) -> None:
    lines = []

    async def main() -> None:
        graph = build(policy)
        async with open_store(tmp_path / "orders.db") as store:

            async def purge_all(older_than: datetime) -> int:
                total = 0
                while True:
                    count = await store.purge(older_than, limit=100)
                    total += count
                    if count < 100:
                        return total

            for number in range(1, 5):
                await graph.run(f"order-{number}", Wire(), store)
            for number in range(1, 4):
                await graph.resume(f"order-{number}", HumanSignal.approve("jdoe"), store)
            now = datetime.now(UTC)
            lines.append(f"Older than 30 days: {await purge_all(now - timedelta(days=30))} threads purged")
            lines.append(f"Older than now: {await purge_all(now + timedelta(seconds=1))} threads purged")
            for name in ("order-1", "order-4"):
                latest = await store.load(name)
                lines.append(f"{name}: " + ("gone" if latest is None else f"kept ({latest.checkpoint.status})"))

    asyncio.run(main())

    assert [
        "Older than 30 days: 0 threads purged",
        f"Older than now: {purged} threads purged",
        "order-1: gone" if purged else "order-1: kept (interrupted)",
        "order-4: kept (interrupted)",
    ] == lines


@pytest.mark.parametrize("policy", list(CheckpointPolicy), ids=str)
@pytest.mark.parametrize("ends", [0, 4], ids=["resume", "resume and end"])
def test_of_eight_processes_that_answer_one_thread_at_once_one_wins(
    tmp_path: Path, policy: CheckpointPolicy, ends: int
) -> None:
    path, gate = tmp_path / "wires.db", tmp_path / "gate"

    async def freeze() -> None:
        async with open_store(path) as store:
            await build(policy).run("wire-1", Wire(), store)

    asyncio.run(freeze())
    actions = ["end"] * ends + ["resume"] * (8 - ends)
    processes = [
        start("answer.py", path, policy.value, action, f"person-{number}", gate)
        for number, action in enumerate(actions)
    ]
    for process in processes:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
    gate.touch()
    outcomes = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert "" == err
        outcomes.append(out.strip())
    log = [json.loads(row) for (row,) in query(path, "SELECT envelope FROM checkpoints ORDER BY sequence")]
    statuses = ["resumed" if "resumed_at" in row else row["status"] for row in log]

    resumes = outcomes[ends:]
    assert resumes.count("Completed") <= 1
    assert {"Completed", "Failed already_resumed", "Failed ended"} >= set(resumes) or "Cancelled" in " ".join(resumes)
    if not ends:
        assert sorted(["Completed", *["Failed already_resumed"] * 7]) == sorted(resumes)
    assert 1 >= len({json.dumps(row["decision"]) for row in log if "decision" in row})
    if "ended" in statuses:
        assert "ended" == statuses[-1]
        assert 1 == statuses.count("ended")


def test_ten_thousand_frozen_threads_leave_nothing_in_the_process(tmp_path: Path) -> None:
    graph = build(CheckpointPolicy.BOUNDARIES)

    async def main() -> int:
        async with open_store(tmp_path / "wires.db", deltas=Deltas(), offload=Offload()) as store:

            async def freeze(first: int) -> None:
                results = await asyncio.gather(
                    *(graph.run(f"wire-{number}", Wire(), store) for number in range(first, first + 500))
                )
                assert all(isinstance(result, Interrupted) for result in results)

            tracemalloc.start()
            for first in range(0, 1_500, 500):
                await freeze(first)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for first in range(1_500, 11_500, 500):
                await freeze(first)
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            return grown

    # Bytes a thread: less than any object would take.  A cache of 1,024 names was full before; the rest is tables of
    # the loop that grow once.
    assert 20 > asyncio.run(main()) / 10_000


def test_a_loop_that_is_kept_busy_does_not_starve_saves_and_leases(tmp_path: Path) -> None:
    """The loop works in slices of a millisecond; what counts is how many of them a save has to wait for."""

    async def main() -> list[int]:
        slices = 0
        done = False

        async def busy() -> None:
            nonlocal slices
            while not done:
                end = asyncio.get_running_loop().time() + 0.001
                while asyncio.get_running_loop().time() < end:
                    pass
                slices += 1
                await asyncio.sleep(0)

        graph = build(CheckpointPolicy.EVERY_NODE)
        async with open_store(tmp_path / "busy.db") as store:
            worker = asyncio.create_task(busy())
            waited = []
            for number in range(10):
                before = slices
                result = await graph.run(f"t{number}", Wire(), store)
                assert isinstance(result, Interrupted)
                result = await graph.resume(f"t{number}", HumanSignal.approve("jdoe"), store)
                assert isinstance(result, Completed)
                waited.append((slices - before) // 5)  # five steps: a load and four saves with their leases
            done = True
            await worker
            return waited

    waited = asyncio.run(main())

    assert sorted(waited)[len(waited) // 2] < 100
