"""`open_store`: what it opens, in which order it closes, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import attrs
import pytest

from strata_core._shared_memory import SharedMemoryBackend
from strata_core.blobs import InMemoryBlobStore
from strata_core.capabilities import Capability
from strata_core.errors import (
    InvalidInputError,
    PluginError,
    ReadOnlyError,
    StoreClosedError,
    StoreUnavailableError,
    StrataError,
    UnsupportedError,
    UsageError,
)
from strata_core.hookspecs import (
    BlobProvider,
    QueryProvider,
    RetentionProvider,
    StoreProvider,
    WrapperLayer,
    WrapperProvider,
    hookimpl,
)
from strata_core.memory import MemoryBackend
from strata_core.opening import open_store
from strata_core.options import Deltas, Offload, Setup, StoreOptions
from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.rows import Commit, HeadQuery, Take
from strata_core.store import RowStore
from strata_core.testing import FakeClock

EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "hunter2secret"
PORTS = [
    "save",
    "save_if_latest",
    "save_under_lease",
    "load",
    "acquire_lease",
    "renew_lease",
    "release_lease",
    "live_lease",
    "list_threads",
    "get_log",
    "purge",
    "setup",
    "capabilities",
]


def checkpoint(thread_id: str = "t", **state: Any) -> Checkpoint:
    return Checkpoint(thread_id, CheckpointStatus.COMPLETED, state, EARLIER)


def plugin(**hooks: Any) -> SimpleNamespace:
    """Return a plugin with these providers, by kind; ``wrapper_2=`` is another wrapper."""
    names = {
        "store": "strata_checkpoint_store",
        "query": "strata_checkpoint_query",
        "retention": "strata_checkpoint_retention",
        "blobs": "strata_blob_store",
        "wrapper": "strata_wrap_checkpoint_store",
    }

    def implement(kind: str, provider: object) -> Any:
        @hookimpl(specname=names[kind.partition("_")[0]])
        def hook() -> object:
            return provider

        return hook

    return SimpleNamespace(**{kind: implement(kind, provider) for kind, provider in hooks.items()})


def store_plugin(make: Callable[[str, StoreOptions], Any], **more: Any) -> SimpleNamespace:
    options_class = more.pop("options_class", None)
    return plugin(store=StoreProvider("acme", ("acme",), 1, make, options_class), **more)


class Backend(MemoryBackend):
    """Notes its life, and fails or waits where it is told to."""

    def __init__(self, life: list[str], fail_open: BaseException | None = None, wait: str = "") -> None:
        super().__init__()
        self._life = life
        self._fail_open = fail_open
        self._wait = wait

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        self._life.append(f"open backend {'read-only' if read_only else setup.value}")
        if self._wait == "open":
            await asyncio.Event().wait()
        if self._fail_open is not None:
            raise self._fail_open

    async def close(self) -> None:
        self._life.append("close backend")


class Resource:
    """An async context manager that notes when it is entered and left."""

    def __init__(self, life: list[str], name: str, inner: object, *, wait: bool = False) -> None:
        self._life = life
        self._name = name
        self._inner = inner
        self._wait = wait

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        self._life.append(f"enter {self._name}")
        if self._wait:
            await asyncio.Event().wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._life.append(f"leave {self._name}")


async def opened_and_closed(*arguments: Any, **keywords: Any) -> Any:
    async with open_store(*arguments, **keywords) as store:
        return store


class TestMemory:
    @pytest.mark.parametrize("url", ["memory://", "memory://shared-0"])
    def test_a_store_from_a_url_serves_every_port(self, url: str) -> None:
        """Also with deltas and offload."""

        async def scenario() -> tuple[Any, ...]:
            async with open_store(url, deltas=Deltas(), offload=Offload(threshold=10)) as store:
                first = await store.save(checkpoint(text="x" * 50))
                entry = await store.load("t")
                threads = (await store.list_threads()).threads
                log = (await store.get_log("t")).entries
                purged = await store.purge(EARLIER + timedelta(days=1))
                await store.setup()
                return first, entry and entry.checkpoint.frozen_state, len(threads), len(log), purged

        assert (0, {"text": "x" * 50}, 1, 1, 1) == asyncio.run(scenario())

    @pytest.mark.parametrize("url", ["memory://", "memory:", "MEMORY://"])
    def test_memory_without_a_name_is_private(self, url: str) -> None:
        """Two stores that are open at once know nothing of each other."""

        async def scenario() -> object:
            async with open_store(url) as one, open_store(url) as other:
                await one.save(checkpoint())
                return await other.load("t")

        assert asyncio.run(scenario()) is None

    def test_memory_with_a_name_is_shared_in_the_process(self) -> None:
        """By stores that are open at once, and by one event loop after the other."""

        async def save(sequence: int) -> int:
            async with open_store("memory://shared-1") as one, open_store("memory://shared%2D1") as other:
                assert await one.save(checkpoint()) == sequence
                entry = await other.load("t")
                assert entry is not None
                return entry.sequence

        assert [0, 1] == [asyncio.run(save(0)), asyncio.run(save(1))]

    def test_other_names_are_other_stores(self) -> None:
        """Names are compared exactly."""

        async def scenario() -> list[object]:
            async with open_store("memory://shared-2") as store:
                await store.save(checkpoint())
            others: list[object] = []
            for url in ("memory://Shared-2", "memory://shared-2/", "memory://shared-2x", "memory://"):
                async with open_store(url) as store:
                    others.append(await store.load("t"))
            return others

        assert [None] * 4 == asyncio.run(scenario())

    def test_event_loops_in_several_threads_share_it_without_losing_a_write(self) -> None:
        """Every append gets a sequence of its own."""
        sequences: list[int] = []

        async def work() -> None:
            async with open_store("memory://shared-3") as store:
                for _ in range(200):
                    sequences.append(await store.save(checkpoint()))  # noqa: PERF401  # appended one by one on purpose

        threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert list(range(800)) == sorted(sequences)

    def test_every_step_on_shared_memory_is_taken_alone(self) -> None:
        """The clock is read in the middle of a step, and finds the lock held."""
        held: list[bool] = []

        class Watching(FakeClock):
            def now(self) -> datetime:
                held.append(backend._lock.locked())
                return super().now()

        backend = SharedMemoryBackend(Watching())

        async def scenario() -> None:
            await backend.commit([Commit("t", b"12345678", lease=Take("me", 1))])
            await backend.read_head("t")
            await backend.list_heads(HeadQuery())

        asyncio.run(scenario())

        assert [True, True, True] == held

    def test_a_shared_memory_has_one_clock(self) -> None:
        """Leases judged by two clocks would mean nothing; the default joins whatever clock there is."""
        clock = FakeClock()

        async def scenario() -> datetime:
            async with open_store("memory://shared-4", clock=clock), open_store("memory://shared-4", clock=clock):
                pass
            async with open_store("memory://shared-4") as store:
                lease = await store.acquire_lease("t", owner="me", ttl=timedelta(seconds=1))
            with pytest.raises(InvalidInputError, match="the clock that 'memory://shared-4' was first opened with"):
                await opened_and_closed("memory://shared-4", clock=FakeClock())
            assert lease is not None
            return lease.expires_at

        assert clock.now() + timedelta(seconds=1) == asyncio.run(scenario())

    @pytest.mark.parametrize("url", ["memory://x?size=1", "memory://x#1", "memory:?x"])
    def test_a_memory_url_has_no_query(self, url: str) -> None:
        """It would be ignored, and nobody would know."""
        with pytest.raises(InvalidInputError, match="query or fragment"):
            asyncio.run(opened_and_closed(url))

    def test_a_read_only_store_refuses_writes(self) -> None:
        """And still reads."""

        async def scenario() -> object:
            async with open_store("memory://shared-5") as store:
                await store.save(checkpoint())
            async with open_store("memory://shared-5", read_only=True) as store:
                with pytest.raises(ReadOnlyError):
                    await store.save(checkpoint())
                with pytest.raises(ReadOnlyError):
                    await store.setup()
                entry = await store.load("t")
                return entry and entry.sequence

        assert 0 == asyncio.run(scenario())


class TestArguments:
    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("setup", "sometimes"),
            ("setup", "AUTO"),
            ("setup", None),
            ("setup", True),
            ("setup", b"auto"),
            ("deltas", True),
            ("deltas", 16),
            ("offload", True),
            ("offload", "file:blobs"),
            ("read_only", "no"),
            ("read_only", 1),
            ("wrappers", "audit"),
            ("wrappers", [b"audit"]),
            ("wrappers", 1),
            ("plugins", "strata_sqlite"),
            ("plugins", 1),
        ],
    )
    def test_a_wrong_argument_is_refused_at_once(self, argument: str, value: object) -> None:
        """At the call, where the mistake is, and by name."""
        with pytest.raises(InvalidInputError) as refused:
            open_store("memory://", **{argument: value})  # type: ignore[arg-type]

        assert argument == refused.value.argument

    @pytest.mark.parametrize("blobs", [1, b"file:x", object(), "", "a\0b"])
    def test_blobs_are_a_store_a_url_or_a_folder(self, blobs: Any) -> None:
        """The error names the part of the argument."""
        with pytest.raises(InvalidInputError) as refused:
            open_store("memory://", offload=Offload(blobs=blobs))

        assert "offload.blobs" == refused.value.argument

    @pytest.mark.parametrize(("setup", "given"), [("auto", "auto"), ("never", "never"), (Setup.NEVER, "never")])
    def test_setup_reaches_the_backend(self, setup: Setup | str, given: str) -> None:
        """As the enum member or as its text."""
        life: list[str] = []
        asyncio.run(opened_and_closed("acme:", setup=setup, plugins=[store_plugin(lambda *_: Backend(life))]))

        assert [f"open backend {given}", "close backend"] == life

    def test_the_provider_gets_the_url_and_the_options(self) -> None:
        """Everything that is not core's own."""
        seen: list[object] = []
        clock = FakeClock()

        @attrs.frozen
        class AcmeOptions:
            pool: int = 1

        def make(url: str, options: StoreOptions) -> MemoryBackend:
            seen.extend([url, options])
            return MemoryBackend()

        asyncio.run(
            opened_and_closed(
                "acme://u:p@h/x",
                read_only=True,
                setup="never",
                options=AcmeOptions(3),
                clock=clock,
                plugins=[store_plugin(make, options_class=AcmeOptions)],
            )
        )

        assert ["acme://u:p@h/x", StoreOptions(True, Setup.NEVER, clock, AcmeOptions(3))] == seen

    def test_options_of_another_store_are_refused_with_both_classes(self) -> None:
        """Before anything is opened."""

        class AcmeOptions: ...

        class OtherOptions: ...

        made: list[object] = []
        plugins = [store_plugin(lambda *_: made.append(1), options_class=AcmeOptions)]

        with pytest.raises(InvalidInputError) as refused:
            asyncio.run(opened_and_closed("acme:", options=OtherOptions(), plugins=plugins))

        assert "options" == refused.value.argument
        assert "AcmeOptions for 'acme' stores, not " in str(refused.value)
        assert "OtherOptions" in str(refused.value)
        assert [] == made

    def test_a_store_without_options_refuses_any(self) -> None:
        """They would be ignored, and nobody would know."""
        with pytest.raises(InvalidInputError, match=r"^options: must be None: 'memory' stores take no options$"):
            asyncio.run(opened_and_closed("memory://", options={}))


class TestLife:
    def test_nothing_happens_before_entering(self) -> None:
        """Making it opens nothing, and throwing it away warns of nothing."""
        life: list[str] = []
        open_store("acme:", plugins=[store_plugin(lambda *_: life.append("made"))])
        open_store("no-such-scheme:", wrappers=["no-such-wrapper"])

        assert [] == life

    @pytest.mark.parametrize("port", PORTS)
    def test_forgetting_async_with_is_told(self, port: str) -> None:
        """Whatever is called first, the error shows what to write."""
        with pytest.raises(UsageError, match="write 'async with open_store"):
            getattr(open_store(f"postgres://app:{SECRET}@h/db"), port)

    def test_other_attributes_are_missing_as_usual(self) -> None:
        """So that introspection goes on working."""
        with pytest.raises(AttributeError):
            _ = open_store("memory://").sava

    def test_it_can_be_entered_once(self) -> None:
        """A second time is refused, also after a failure and while it is open."""

        async def scenario() -> list[str]:
            refused = []
            good, bad = open_store("memory://"), open_store("no-such-scheme:")
            async with good:
                with pytest.raises(UsageError, match="entered before"):
                    await good.__aenter__()
                refused.append("while open")
            for opening in (good, bad, bad):
                with pytest.raises(StrataError) as error:
                    await opening.__aenter__()
                refused.append(type(error.value).__name__)
            return refused

        assert ["while open", "UsageError", "PluginError", "UsageError"] == asyncio.run(scenario())

    def test_the_store_is_closed_after_the_block(self) -> None:
        """Whoever kept it is told."""

        async def scenario() -> None:
            store = await opened_and_closed("memory://")
            with pytest.raises(StoreClosedError):
                await store.load("t")

        asyncio.run(scenario())

    def test_an_error_in_the_block_closes_and_goes_on(self) -> None:
        """It is not swallowed."""
        life: list[str] = []

        async def scenario() -> None:
            async with open_store("acme:", plugins=[store_plugin(lambda *_: Backend(life))]):
                raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            asyncio.run(scenario())
        assert ["open backend auto", "close backend"] == life

    def test_everything_is_closed_in_the_opposite_order(self) -> None:
        """Wrappers first, then the store, and its blobs last."""
        life: list[str] = []
        plugins = [
            store_plugin(lambda *_: Backend(life)),
            plugin(
                blobs=BlobProvider("shelf", ("shelf",), 1, lambda _: Resource(life, "blobs", InMemoryBlobStore())),
                wrapper=WrapperProvider("w", WrapperLayer.PORTS, lambda store: Resource(life, "wrapper", store), 1),
            ),
        ]

        asyncio.run(opened_and_closed("acme:", offload=Offload(blobs="shelf:"), wrappers=["w"], plugins=plugins))

        assert [
            "enter blobs",
            "open backend auto",
            "enter wrapper",
            "leave wrapper",
            "close backend",
            "leave blobs",
        ] == life

    @pytest.mark.parametrize("failing", ["backend", "wrapper", "wrapper made", "capability"])
    def test_a_failure_while_opening_closes_what_was_open(self, failing: str) -> None:
        """And comes through as it is."""
        life: list[str] = []

        def wrap(store: Any) -> Any:
            if failing == "wrapper made":
                return object()
            raise StoreUnavailableError("no wrapper")

        backend = Backend(life, StoreUnavailableError("no backend") if failing == "backend" else None)
        if failing == "capability":
            backend.capabilities = frozenset()
        plugins = [
            store_plugin(lambda *_: backend),
            plugin(
                blobs=BlobProvider("shelf", ("shelf",), 1, lambda _: Resource(life, "blobs", InMemoryBlobStore())),
                wrapper=WrapperProvider("w", WrapperLayer.PORTS, wrap, 1),
            ),
        ]

        with pytest.raises((StoreUnavailableError, PluginError, UnsupportedError)):
            asyncio.run(opened_and_closed("acme:", offload=Offload(blobs="shelf:"), wrappers=["w"], plugins=plugins))

        inner = [] if failing == "capability" else ["open backend auto", "close backend"]
        assert ["enter blobs", *inner, "leave blobs"] == life

    @pytest.mark.parametrize("waiting", ["blobs", "backend", "wrapper"])
    def test_a_cancellation_at_any_await_closes_what_was_open(self, waiting: str) -> None:
        """The caller sees the cancellation, and nothing stays behind."""
        life: list[str] = []
        plugins = [
            store_plugin(lambda *_: Backend(life, wait="open" if waiting == "backend" else "")),
            plugin(
                blobs=BlobProvider(
                    "shelf",
                    ("shelf",),
                    1,
                    lambda _: Resource(life, "blobs", InMemoryBlobStore(), wait=waiting == "blobs"),
                ),
                wrapper=WrapperProvider(
                    "w",
                    WrapperLayer.PORTS,
                    lambda store: Resource(life, "wrapper", store, wait=waiting == "wrapper"),
                    1,
                ),
            ),
        ]
        keywords: dict[str, Any] = {"offload": Offload(blobs="shelf:"), "wrappers": ["w"], "plugins": plugins}

        async def scenario() -> bool:
            task = asyncio.create_task(opened_and_closed("acme:", **keywords))
            reached = {"blobs": "enter blobs", "backend": "open backend auto", "wrapper": "enter wrapper"}[waiting]
            while reached not in life:
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()

        assert asyncio.run(scenario()) is True
        assert {
            "blobs": ["enter blobs"],
            "backend": ["enter blobs", "open backend auto", "close backend", "leave blobs"],
            "wrapper": ["enter blobs", "open backend auto", "enter wrapper", "close backend", "leave blobs"],
        }[waiting] == life


class TestBlobs:
    def test_a_folder_url_takes_what_is_offloaded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A bare folder, a path and both kinds of URL mean the same."""
        monkeypatch.chdir(tmp_path)

        async def scenario(blobs: Any) -> None:
            async with open_store("memory://", offload=Offload(threshold=10, blobs=blobs)) as store:
                await store.save(checkpoint(text="x" * 50))
                assert await store.load("t") is not None

        files = []
        for name, blobs in [
            ("a", "a"),
            ("b", Path("b")),
            ("c", "file:c"),
            ("d", f"file://{tmp_path}/d"),
            ("e", tmp_path / "e"),
        ]:
            asyncio.run(scenario(blobs))
            files.append([path.parent.name for path in (tmp_path / name).rglob("*") if path.is_file()])

        assert [["74"]] * 5 == files

    def test_a_blob_store_that_was_passed_in_is_not_closed(self) -> None:
        """It stays its owner's."""
        life: list[str] = []
        blobs = Resource(life, "blobs", InMemoryBlobStore())

        asyncio.run(opened_and_closed("memory://", offload=Offload(blobs=blobs)))

        assert [] == life

    def test_an_unknown_blob_scheme_is_refused_before_the_store_is_opened(self) -> None:
        """It lists what is installed."""
        life: list[str] = []

        with pytest.raises(PluginError, match=r"no plugin offers a blob store for 's4' URLs.*; installed: file"):
            asyncio.run(
                opened_and_closed(
                    "acme:", offload=Offload(blobs="s4://b"), plugins=[store_plugin(lambda *_: Backend(life))]
                )
            )
        assert [] == life

    def test_what_is_no_blob_store_is_refused(self) -> None:
        """The error says what it lacks."""
        plugins = [plugin(blobs=BlobProvider("shelf", ("shelf",), 1, lambda _: object()))]  # type: ignore[arg-type,return-value]

        with pytest.raises(PluginError, match="opens a object, which lacks put, get, delete_thread"):
            asyncio.run(opened_and_closed("memory:", offload=Offload(blobs="shelf:"), plugins=plugins))


class Forwarding:
    """A wrapper of ports that notes each save."""

    def __init__(self, name: str, store: Any, calls: list[str]) -> None:
        self._name = name
        self._store = store
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def save(self, checkpoint: Checkpoint, **options: Any) -> Any:
        self._calls.append(self._name)
        return await self._store.save(checkpoint, **options)

    async def list_threads(self, *arguments: Any) -> Any:
        self._calls.append(f"{self._name} lists")
        return await self._store.list_threads(*arguments)


class ForwardingBackend(MemoryBackend):
    """A wrapper of rows that notes each commit."""

    def __init__(self, name: str, inner: Any, calls: list[str]) -> None:
        super().__init__()
        self._name = name
        self._inner = inner
        self._calls = calls

    async def commit(self, batch: Sequence[Any]) -> Any:
        self._calls.append(self._name)
        return await self._inner.commit(batch)


class TestWrappers:
    def wrappers(self, calls: list[str]) -> list[SimpleNamespace]:
        def ports(name: str) -> WrapperProvider:
            return WrapperProvider(name, WrapperLayer.PORTS, lambda store: Forwarding(name, store, calls), 1)

        def rows(name: str) -> WrapperProvider:
            return WrapperProvider(name, WrapperLayer.ROW, lambda inner: ForwardingBackend(name, inner, calls), 1)

        return [plugin(wrapper_1=ports("p1"), wrapper_2=ports("p2"), wrapper_3=rows("r1"), wrapper_4=rows("r2"))]

    @pytest.mark.parametrize(
        ("asked", "seen"),
        [
            ([], []),
            (["p1"], ["p1"]),
            (["p1", "p2"], ["p2", "p1"]),
            (["p2", "p1"], ["p1", "p2"]),
            (["r1", "r2"], ["r2", "r1"]),
            (["p1", "r2", "p2", "r1"], ["p2", "p1", "r1", "r2"]),
            (["p1", "p1"], ["p1", "p1"]),
        ],
    )
    def test_wrappers_are_put_around_the_store_in_the_given_order(self, asked: list[str], seen: list[str]) -> None:
        """The first is nearest to the storage, rows lie below ports, and nobody comes unasked."""
        calls: list[str] = []

        async def scenario() -> None:
            async with open_store("memory:", wrappers=asked, plugins=self.wrappers(calls)) as store:
                await store.save(checkpoint())

        asyncio.run(scenario())

        assert seen == calls

    def test_a_wrapper_of_ports_wraps_the_query_too(self) -> None:
        """Store, query and retention are one object."""
        calls: list[str] = []

        async def scenario() -> object:
            async with open_store("memory:", wrappers=["p1"], plugins=self.wrappers(calls)) as store:
                await store.list_threads()
                return store.capabilities == MemoryBackend.capabilities

        assert asyncio.run(scenario()) is True
        assert ["p1 lists"] == calls

    def test_an_unknown_wrapper_is_refused_before_anything_is_opened(self) -> None:
        """It lists what is installed."""
        life: list[str] = []

        with pytest.raises(PluginError, match="no plugin offers a wrapper named 'p9'; installed: "):
            asyncio.run(opened_and_closed("acme:", wrappers=["p9"], plugins=[store_plugin(lambda *_: Backend(life))]))
        assert [] == life

    @pytest.mark.parametrize(
        ("layer", "said"),
        [
            ("row", "wraps rows in a object, which is no RowBackend"),
            ("ports", "wraps a store in a object, which lacks save,"),
        ],
    )
    def test_what_wraps_in_something_else_is_refused(self, layer: str, said: str) -> None:
        """The error names the plugin and what is missing."""
        wrapper = WrapperProvider("w", layer, lambda _: object(), 1)

        with pytest.raises(PluginError, match=said):
            asyncio.run(opened_and_closed("memory:", wrappers=["w"], plugins=[plugin(wrapper=wrapper)]))


class Service:
    """A whole store, as a client of a service would be, with the capabilities that it is given."""

    def __init__(self, *capabilities: Capability) -> None:
        self.capabilities = frozenset(capabilities)
        self.rows = RowStore(MemoryBackend())

    def __getattr__(self, name: str) -> Any:
        if name == "rows" or (name in {"list_threads", "get_log"} and Capability.QUERY not in self.capabilities):
            raise AttributeError(name)
        return getattr(self.rows, name)


def service_plugin(*capabilities: Capability, **more: Any) -> SimpleNamespace:
    @asynccontextmanager
    async def opened() -> Any:
        service = Service(*capabilities)
        async with service.rows:
            yield service

    return store_plugin(lambda *_: opened(), **more)


class TestDirectStores:
    def test_a_whole_store_serves_what_it_declares(self) -> None:
        """Without any hook but its own."""

        async def scenario() -> tuple[Any, ...]:
            plugins = [service_plugin(Capability.QUERY, Capability.RETENTION, Capability.MULTI_PROCESS)]
            async with open_store("acme:", plugins=plugins) as store:
                sequence = await store.save(checkpoint(), write_id=b"12345678")
                again = await store.save(checkpoint(), write_id=b"12345678")
                entry = await store.load("t")
                assert entry is not None
                following = await store.save_if_latest(checkpoint(), entry.revision, unleased=True)
                lease = await store.acquire_lease("t", owner="me", ttl=timedelta(seconds=9), save=checkpoint())
                assert lease is not None
                lease = await store.renew_lease(lease, ttl=timedelta(seconds=99))
                live = await store.live_lease("t")
                last = await store.save_under_lease(checkpoint(), lease, expected=2, release=True)
                await store.release_lease(lease)
                await store.setup()
                threads = (await store.list_threads()).threads
                log = (await store.get_log("t", start=1, limit=2)).entries
                purged = await store.purge(EARLIER + timedelta(days=1), limit=1)
                return (
                    store.capabilities,
                    [sequence, again, following, lease.saved, last],
                    live and live.token == lease.token,
                    len(threads),
                    [found.sequence for found in log],
                    purged,
                )

        declared = frozenset({Capability.QUERY, Capability.RETENTION, Capability.MULTI_PROCESS})

        assert (declared, [0, 0, 1, 2, 3], True, 1, [1, 2], 1) == asyncio.run(scenario())

    def test_a_port_that_nobody_serves_says_so(self) -> None:
        """The capabilities name it neither, and nothing is written."""

        async def scenario() -> list[object]:
            seen: list[object] = []
            async with open_store("acme:", plugins=[service_plugin()]) as store:
                for call in (store.list_threads(), store.get_log("t"), store.purge(EARLIER)):
                    with pytest.raises(UnsupportedError) as refused:
                        await call
                    seen.append(refused.value.capability)
                return [*seen, store.capabilities]

        assert [Capability.QUERY, Capability.QUERY, Capability.RETENTION, frozenset()] == asyncio.run(scenario())

    def test_query_and_retention_are_bound_to_the_open_store(self) -> None:
        """By the store's name, from the same plugin or from another one that was passed."""
        bound: list[object] = []

        class Query:
            def __init__(self, store: Any) -> None:
                bound.append(store)
                self.list_threads = store.rows.list_threads
                self.get_log = store.rows.get_log

        class Retention:
            def __init__(self, store: Any) -> None:
                bound.append(store)
                self.purge = store.rows.purge

        async def scenario() -> tuple[Any, ...]:
            plugins = [
                service_plugin(query=QueryProvider("acme", 1, Query)),
                plugin(retention=RetentionProvider("acme", 1, Retention)),
                plugin(retention=RetentionProvider("other", 1, Retention)),
            ]
            async with open_store("acme:", plugins=plugins) as store:
                await store.save(checkpoint())
                threads = (await store.list_threads()).threads
                log = (await store.get_log("t")).entries
                return len(threads), len(log), await store.purge(EARLIER + timedelta(days=1)), store.capabilities

        assert (1, 1, 1, {Capability.QUERY, Capability.RETENTION}) == asyncio.run(scenario())
        assert [Service, Service] == [type(store) for store in bound]

    @pytest.mark.parametrize(
        ("keywords", "capability"),
        [({"deltas": Deltas()}, Capability.DELTAS), ({"offload": Offload()}, Capability.OFFLOAD)],
    )
    def test_it_has_no_rows_to_encode(self, keywords: dict[str, Any], capability: Capability) -> None:
        """Deltas and offload are refused instead of ignored."""
        with pytest.raises(UnsupportedError) as refused:
            asyncio.run(opened_and_closed("acme:", plugins=[service_plugin()], **keywords))

        assert capability is refused.value.capability

    def test_it_has_no_rows_to_wrap(self) -> None:
        """A wrapper of rows is refused by name."""
        wrapper = WrapperProvider("ink", WrapperLayer.ROW, lambda backend: backend, 1)

        with pytest.raises(InvalidInputError, match="wrappers: 'ink' wraps rows, and 'acme' stores have none"):
            asyncio.run(opened_and_closed("acme:", wrappers=["ink"], plugins=[service_plugin(wrapper=wrapper)]))

    def test_it_is_opened_read_only_only_if_it_can(self) -> None:
        """And then every write is refused."""

        async def scenario() -> int:
            with pytest.raises(UnsupportedError) as unsupported:
                await opened_and_closed("acme:", read_only=True, plugins=[service_plugin()])
            assert unsupported.value.capability is Capability.READ_ONLY
            refused = 0
            plugins = [service_plugin(Capability.READ_ONLY, Capability.RETENTION)]
            async with open_store("acme:", read_only=True, plugins=plugins) as store:
                for write in (
                    store.save(checkpoint()),
                    store.save_if_latest(checkpoint(), None),
                    store.acquire_lease("t", owner="me", ttl=timedelta(1)),
                    store.purge(EARLIER),
                    store.setup(),
                ):
                    with pytest.raises(ReadOnlyError):
                        await write
                    refused += 1
                assert await store.load("t") is None
            return refused

        assert 5 == asyncio.run(scenario())

    def test_it_is_closed_after_the_block_and_belongs_to_its_loop(self) -> None:
        """Like every other store, also when the service itself would not notice."""

        async def nothing(*_: object, **__: object) -> None: ...

        careless = SimpleNamespace(capabilities=frozenset(), **dict.fromkeys(PORTS[:8], nothing))

        async def scenario() -> None:
            async with open_store("acme:", plugins=[store_plugin(lambda *_: careless)]) as store:
                assert await store.load("t") is None

                def elsewhere() -> None:
                    with pytest.raises(UsageError, match="belongs to the event loop that opened it"):
                        asyncio.run(store.load("t"))

                await asyncio.to_thread(elsewhere)
            with pytest.raises(StoreClosedError):
                await store.load("t")
            with pytest.raises(StoreClosedError):
                await store.save(checkpoint())

        asyncio.run(scenario())

    def test_what_is_no_store_is_refused(self) -> None:
        """The error says what it lacks."""
        with pytest.raises(PluginError, match="opens a object, which lacks save, save_if_latest,"):
            asyncio.run(opened_and_closed("acme:", plugins=[store_plugin(lambda *_: object())]))

    def test_a_capability_that_is_declared_must_be_there(self) -> None:
        """A store that promises listings and has none is found at start."""

        class Liar(Service):
            def __getattr__(self, name: str) -> Any:
                if name == "get_log":
                    raise AttributeError(name)
                return super().__getattr__(name)

        with pytest.raises(PluginError, match="declares the capability 'query' and opens a Liar, which lacks get_log"):
            asyncio.run(opened_and_closed("acme:", plugins=[store_plugin(lambda *_: Liar(Capability.QUERY))]))


class TestSecrets:
    def test_a_provider_that_quotes_its_url_leaks_nothing(self) -> None:
        """Neither in the message nor in the traceback."""

        def make(url: str, options: StoreOptions) -> Any:
            raise ValueError(f"cannot parse {url}")

        with pytest.raises(PluginError) as failure:
            asyncio.run(opened_and_closed(f"acme://app:{SECRET}@h/db", plugins=[store_plugin(make)]))

        assert "fails to open: ValueError: cannot parse acme://app:***@h/db" in str(failure.value)
        assert failure.value.__cause__ is None
        assert failure.value.__suppress_context__

    def test_a_provider_that_fails_otherwise_shows_its_cause(self) -> None:
        """The plugin is named, and the cause is kept."""

        def make(url: str, options: StoreOptions) -> Any:
            return 1 / 0

        with pytest.raises(PluginError, match="fails to open: ZeroDivisionError: division by zero") as failure:
            asyncio.run(opened_and_closed(f"acme://app:{SECRET}@h/db", plugins=[store_plugin(make)]))

        assert isinstance(failure.value.__cause__, ZeroDivisionError)

    def test_a_providers_own_errors_come_through(self) -> None:
        """They say more than we could."""

        def make(url: str, options: StoreOptions) -> Any:
            raise InvalidInputError("url", "names no database")

        with pytest.raises(InvalidInputError, match="names no database"):
            asyncio.run(opened_and_closed("acme:", plugins=[store_plugin(make)]))

    def test_an_async_factory_in_disguise_is_refused(self) -> None:
        """Without a warning that nobody awaited it."""

        async def later() -> None: ...

        with pytest.raises(PluginError, match="has an async open: return an async context manager"):
            asyncio.run(opened_and_closed("acme:", plugins=[store_plugin(lambda *_: later())]))
