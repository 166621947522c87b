"""Processes that race for the same threads: one gets each, the others are told, and the log says who."""

from __future__ import annotations

from typing import Any

from process_support import finish, race_row, start, with_store

THREADS = 12
PARTS = {  # what each process does to dead threads, and to waiting ones that are due
    "ann": ("recover", "answer"),
    "bob": ("recover", "due"),
    "ops": ("end", "end"),
    "cron": ("recover", "due"),
}


def test_of_everybody_who_wants_a_thread_one_gets_it(url: str) -> None:
    ids = [f"{kind}-{number}" for kind in ("dead", "waiting") for number in range(THREADS)]

    async def seed(store: Any) -> None:
        for thread_id in ids:
            await store.save(race_row(thread_id))

    with_store(url, seed)
    processes = [start("race.py", url, name, *actions, THREADS) for name, actions in PARTS.items()]
    for process in processes:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes: dict[str, dict[str, list[str]]] = {thread_id: {} for thread_id in ids}
    for process in processes:
        for thread_id, name, *outcome in map(str.split, finish(process)):
            outcomes[thread_id][name] = outcome

    async def check(store: Any) -> set[str]:
        actions = set()
        for thread_id, outcome in outcomes.items():
            winners = [name for name, (_, kind, *_) in outcome.items() if kind in ("Completed", "Cancelled")]
            codes = {code for _, kind, *rest in outcome.values() if kind == "Failed" for code in rest}
            rows = [entry.checkpoint for entry in (await store.get_log(thread_id, start=1)).entries]

            assert 1 == len(winners), outcome
            assert codes <= {"already_resumed", "lease_held", "running", "completed", "ended", "not_running"}
            (winner,) = winners
            action = outcome[winner][0]
            actions.add(action)
            if action == "end":
                assert ["ended"] == [row.status.value for row in rows]
                assert winner == rows[0].metadata["strata.ended_by"]
                continue
            assert ["running", "running", "completed"] == [row.status.value for row in rows]
            assert ["Ask", "Pay", "Ship"] == rows[-1].frozen_state["done"]
            if action == "recover":
                assert winner == rows[0].metadata["strata.recovered_by"]
            else:
                assert (winner if action == "answer" else None) == (rows[-1].decision and rows[-1].decision.reviewer)
        return actions

    assert with_store(url, check)
