"""Signals, tokens, arguments, calls without an event loop, and a store that is down."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import attrs
import pytest

from strata_core.errors import (
    CorruptCheckpointError,
    InvalidInputError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnavailableError,
    UsageError,
)
from strata_core.graph import (
    CancellationToken,
    Cancelled,
    CancelReason,
    CheckpointPolicy,
    Completed,
    FailureCode,
    HumanSignal,
    Interrupted,
    StateGraph,
)
from strata_core.memory import MemoryBackend
from strata_core.store import RowStore

pytestmark = pytest.mark.once("arguments, tokens, loops; a store that is down is a wrapper around any")

new: Any = StateGraph
"""Tests misuse it on purpose, and look into results of every kind."""

BOTH = pytest.mark.parametrize("policy", list(CheckpointPolicy))


def waiting(policy: CheckpointPolicy = CheckpointPolicy.BOUNDARIES, **options: Any) -> Any:
    return (
        new(dict)
        .add_node("A", lambda state: {"n": state["n"] + 1})
        .add_interrupt_boundary("A")
        .add_node("B", lambda state: {"n": state["n"] * 10})
        .add_edge("A", "B")
        .compile(checkpointing=policy, **options)
    )


class TestSignals:
    def test_they_are_values_that_chain(self) -> None:
        plain = HumanSignal.approve("jdoe")
        full = plain.with_override("amount", 1.5).with_override("lines", [1]).with_field_override("note", "x")

        assert HumanSignal(True, "jdoe") == plain
        assert HumanSignal(True, "jdoe", {"amount": 1.5, "lines": [1]}, {"note": "x"}) == full
        assert not HumanSignal.reject("jdoe").is_approved
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            plain.is_approved = False  # type: ignore[misc]
        with pytest.raises(TypeError):
            full.overrides["amount"] = 2  # type: ignore[index]

    @pytest.mark.parametrize("reviewer", ["", "a\0", "\ud800", None, 3])
    def test_a_reviewer_is_somebody(self, reviewer: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"^reviewer: "):
            HumanSignal.approve(reviewer)

    def test_a_decimal_is_overridden_by_its_text_and_a_refusal_says_so(self, world: Any) -> None:
        from decimal import Decimal

        async def main() -> None:
            async with world.open() as store:
                graph: Any = StateGraph(dict).add_node("A", lambda state: state).add_interrupt_boundary("A").compile()
                await graph.run("t", {"price": "1"}, store)
                refused = await graph.resume("t", HumanSignal.approve("j").with_override("price", Decimal(2)), store)

                assert refused.detail.startswith("overrides.price: decimal.Decimal has no JSON form here")
                assert refused.detail.endswith("; an override is JSON, so give its text: str(...)")

        asyncio.run(main())

    def test_metadata_has_at_most_64_pairs(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph: Any = StateGraph(dict).add_node("A", lambda state: state).add_interrupt_boundary("A").compile()
                most = {str(n): "x" for n in range(64)}
                await graph.run("most", {}, store, metadata=most)
                with pytest.raises(InvalidInputError, match=r"^metadata: has 65 pairs, at most 64 are allowed"):
                    await graph.run("more", {}, store, metadata={**most, "64": "x"})

                assert most == (await store.load("most")).checkpoint.metadata
                assert await store.load("more") is None

        asyncio.run(main())

    def test_overrides_have_str_keys_and_field_overrides_str_values(self) -> None:
        with pytest.raises(InvalidInputError, match=r"^overrides: keys must be str"):
            HumanSignal.approve("j").with_override(3, 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match=r"^field_overrides\['n'\]: must be a str"):
            HumanSignal.approve("j").with_field_override("n", 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match=r"^is_approved: "):
            HumanSignal("yes", "j")  # type: ignore[arg-type]


class TestTokens:
    def test_the_first_call_counts(self) -> None:
        token = CancellationToken()
        heard = []
        token.subscribe(lambda: heard.append("early"))
        token.subscribe(lambda: heard.append("never"))()
        token.cancel("first")
        token.cancel("second")
        token.subscribe(lambda: heard.append("late"))

        assert token.is_cancelled
        assert "first" == token.reason
        assert ["early", "late"] == heard

    def test_a_reason_is_text(self) -> None:
        with pytest.raises(InvalidInputError):
            CancellationToken().cancel(3)  # type: ignore[arg-type]

    def test_a_run_leaves_nothing_behind_in_a_token(self) -> None:
        token = CancellationToken()
        asyncio.run(waiting().run("t", {"n": 1}, cancellation=token))

        assert {} == token._listeners


class TestArguments:
    @pytest.mark.parametrize("thread_id", ["", "a\0b", "\ud800", "x" * 513, 3, None, b"x"])
    def test_a_thread_id_that_is_none_is_refused_by_every_call(self, world: Any, thread_id: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = waiting()
                for call in (
                    lambda: graph.run(thread_id, {"n": 1}, store),
                    lambda: graph.run(thread_id, {"n": 1}),
                    lambda: graph.resume(thread_id, None, store),
                    lambda: graph.end(thread_id, store),
                ):
                    with pytest.raises(InvalidInputError, match=r"^thread_id: "):
                        await call()

        asyncio.run(main())

    @pytest.mark.parametrize("store", [None, "orders.db", 3, MemoryBackend()])
    def test_a_store_that_is_none_is_refused(self, store: Any) -> None:
        graph = waiting()

        with pytest.raises(InvalidInputError, match=r"^store: "):
            asyncio.run(graph.resume("t", None, store))
        with pytest.raises(InvalidInputError, match=r"^store: "):
            asyncio.run(graph.end("t", store))
        if store is not None:
            with pytest.raises(InvalidInputError, match=r"^store: "):
                asyncio.run(graph.run("t", {"n": 1}, store))

    def test_a_store_that_is_not_open_raises_before_anything_runs(self) -> None:
        ran: list[Any] = []
        graph = new(dict).add_node("A", ran.append).compile(checkpointing=CheckpointPolicy.EVERY_NODE)

        with pytest.raises(UsageError):
            asyncio.run(graph.run("t", {}, RowStore(MemoryBackend())))

        assert [] == ran

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("metadata", {"strata.x": "1"}),
            ("metadata", {"k": 1}),
            ("metadata", {1: "v"}),
            ("metadata", {"k": "\0"}),
            ("metadata", {"k": "v" * 1025}),
            ("metadata", "tenant"),
            ("cancellation", asyncio.Event),
            ("cancellation", True),
        ],
    )
    def test_a_wrong_argument_is_refused_before_anything_runs(self, argument: str, value: Any) -> None:
        ran: list[Any] = []
        graph = new(dict).add_node("A", ran.append).compile()

        with pytest.raises(InvalidInputError, match=rf"^{argument}"):
            asyncio.run(graph.run("t", {}, **{argument: value}))

        assert [] == ran

    @pytest.mark.parametrize("state", [None, [], "x", {1}])
    def test_a_state_of_another_type_is_refused(self, state: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"^state: must be of type dict, not"):
            asyncio.run(waiting().run("t", state))

    @pytest.mark.parametrize("signal", ["approve", True, {"is_approved": True}])
    def test_a_signal_of_another_type_is_refused(self, world: Any, signal: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                with pytest.raises(InvalidInputError, match=r"^signal: "):
                    await waiting().resume("t", signal, store)
                with pytest.raises(InvalidInputError, match=r"^by: "):
                    await waiting().end("t", store, by=3)

        asyncio.run(main())


class TestSync:
    def test_the_calls_without_a_loop_open_their_store_each_time(self) -> None:
        backend = MemoryBackend()
        graph = waiting(CheckpointPolicy.EVERY_NODE)

        assert isinstance(graph.run_sync("t", {"n": 1}, RowStore(backend)), Interrupted)
        resumed = graph.resume_sync("t", HumanSignal.approve("jdoe"), RowStore(backend))
        assert Completed("t", {"n": 20}) == resumed
        graph.run_sync("u", {"n": 1}, RowStore(backend))
        assert Cancelled("u", CancelReason.ENDED, "A") == graph.end_sync("u", RowStore(backend))
        assert isinstance(graph.run_sync("v", {"n": 1}), Interrupted)

    def test_one_store_serves_many_calls(self) -> None:
        store = RowStore(MemoryBackend())
        graph = waiting(CheckpointPolicy.EVERY_NODE)
        graph.run_sync("t", {"n": 1}, store)

        assert Completed("t", {"n": 20}) == graph.resume_sync("t", HumanSignal.approve("jdoe"), store)

    def test_every_one_of_them_refuses_to_run_inside_a_loop(self) -> None:
        graph = waiting()

        async def main() -> None:
            store = RowStore(MemoryBackend())
            for name, call in (
                ("run", lambda: graph.run_sync("t", {"n": 1}, store)),
                ("resume", lambda: graph.resume_sync("t", None, store)),
                ("end", lambda: graph.end_sync("t", store)),
            ):
                with pytest.raises(UsageError, match=rf"await {name}$"):
                    call()

        asyncio.run(main())


class Faulty:
    """A store whose n-th write answers that it may have been done."""

    def __init__(self, store: Any, faults: dict[int, bool]) -> None:
        self._store = store
        self._faults = faults
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in ("save", "save_if_latest", "save_under_lease", "acquire_lease"):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls in self._faults:
                if self._faults[self.calls]:
                    await method(*args, **kwargs)
                raise StoreUnavailableError("the connection broke", maybe_written=True)
            return await method(*args, **kwargs)

        return call


class Replaced:
    """A store with some methods replaced."""

    def __init__(self, store: Any, **methods: Any) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._store, name)


async def busy(*args: Any, **kwargs: Any) -> Any:
    raise StoreBusyError("locked")


class TestStoreThatIsDown:
    @BOTH
    @pytest.mark.parametrize("written", [True, False])
    @pytest.mark.parametrize("call", [1, 2, 3])
    def test_a_write_with_an_unknown_outcome_is_repeated_once_and_done_once(
        self, world: Any, policy: CheckpointPolicy, call: int, written: bool
    ) -> None:
        async def main() -> None:
            async with world.open() as store:
                graph = waiting(policy, clock=world.clock)
                await graph.run("t", {"n": 1}, Faulty(store, {call: written}))
                before = await world.rows(store, "t")
                result = await graph.resume("t", HumanSignal.approve("j"), Faulty(store, {call: written}))

                assert Completed("t", {"n": 20}) == result
                every = policy is CheckpointPolicy.EVERY_NODE
                assert (["running", "interrupted"] if every else ["interrupted"]) == [row[0] for row in before]
                after = [row[0] for row in (await world.rows(store, "t"))[len(before) :]]
                assert (["running", "completed"] if every else ["resumed"]) == after
                assert None is await store.live_lease("t")

        asyncio.run(main())

    @BOTH
    def test_one_that_stays_down_raises(self, world: Any, policy: CheckpointPolicy) -> None:
        async def main() -> None:
            async with world.open() as store:
                with pytest.raises(StoreUnavailableError):
                    await waiting(policy).run("t", {"n": 1}, Faulty(store, {1: False, 2: False}))

                assert None is await store.load("t")

        asyncio.run(main())

    @pytest.mark.parametrize("release", ["works", "raises", "hangs"])
    def test_an_error_in_the_middle_gives_the_lease_back_if_that_is_possible(
        self, world: Any, monkeypatch: pytest.MonkeyPatch, release: str
    ) -> None:
        if release == "hangs":
            monkeypatch.setattr("strata_core.graph._run._GRACE", 0.01)

        async def main() -> None:
            async with world.open() as store:

                async def give_back(lease: Any) -> None:
                    if release == "raises":
                        raise StoreUnavailableError("the connection broke")
                    if release == "hangs":
                        await asyncio.Event().wait()
                    await store.release_lease(lease)

                graph = waiting(CheckpointPolicy.EVERY_NODE, clock=world.clock)
                broken = Replaced(store, save_under_lease=busy, release_lease=give_back)
                with pytest.raises(StoreBusyError):
                    await graph.run("t", {"n": 1}, broken)

                assert ["running"] == [row[0] for row in await world.rows(store, "t")]
                lease = await store.live_lease("t")
                if release == "works":
                    assert None is lease
                    assert isinstance(await graph.end("t", store), Cancelled)
                else:
                    assert None is not lease

        asyncio.run(main())

    def test_a_cancelled_run_whose_checkpoint_cannot_be_saved_gives_the_lease_back(self, world: Any) -> None:
        async def main() -> None:
            async with world.open() as store:
                started = asyncio.Event()

                async def node(state: Any) -> Any:
                    started.set()
                    await asyncio.Event().wait()

                graph = (
                    new(dict).add_node("A", node).compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                task = asyncio.create_task(graph.run("t", {}, Replaced(store, save_under_lease=busy)))
                await started.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

                assert None is await store.live_lease("t")

        asyncio.run(main())

    @pytest.mark.parametrize(
        "error",
        [CorruptCheckpointError("t", 0, "malformed"), SchemaVersionError("too new", found="9.0.0", supported="1.9.0")],
    )
    def test_a_row_that_only_tells_people_something_may_be_unreadable(self, world: Any, error: Exception) -> None:
        async def main() -> None:
            async with world.open() as store:

                async def load(thread_id: str, *, at: int | None = None) -> Any:
                    if at is not None:
                        raise error
                    return await store.load(thread_id)

                bad = [True]

                def node(state: Any) -> Any:
                    return 1 / 0 if bad.pop() else state

                graph = (
                    new(dict).add_node("A", node).compile(checkpointing=CheckpointPolicy.EVERY_NODE, clock=world.clock)
                )
                assert FailureCode.NODE_FAILED is (await graph.run("t", {}, store)).code
                bad.append(False)

                assert Completed("t", {}) == await graph.resume("t", None, Replaced(store, load=load))

        asyncio.run(main())


def test_logs_never_contain_state(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    def leak(state: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(f"bad: {state}")

    async def main() -> None:
        async with world.open() as store:
            graph = new(dict).add_node("A", leak).compile(clock=world.clock)
            await graph.run("t", {"card": "4111-secret"}, store)
            await waiting(clock=world.clock).run("u", {"n": 1, "card": "4111-secret"}, store)
            await waiting(clock=world.clock).end("u", store)

    with caplog.at_level(logging.DEBUG, logger="strata_core.graph"):
        asyncio.run(main())

    assert {"strata_core.graph"} == {record.name for record in caplog.records if record.name.startswith("strata_core")}
    assert "failed at 'A': ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_building_and_running_a_graph_without_a_store_imports_no_cattrs() -> None:
    code = (
        "import asyncio, sys\n"
        "from strata_core.graph import StateGraph\n"
        "graph = StateGraph(dict).add_node('A', lambda state: state).compile()\n"
        "asyncio.run(graph.run('t', {}))\n"
        "sys.exit(1 if {'cattrs', 'pluggy', 'pytest'} & set(sys.modules) else 0)\n"
    )

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
