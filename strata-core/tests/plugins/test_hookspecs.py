"""The hooks teach: each docstring holds a whole plugin, and it works."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import itertools
import logging
import textwrap
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import attrs
import pytest

from strata_core import hookspecs
from strata_core.hookspecs import BlobProvider, QueryProvider, RetentionProvider, StoreProvider, WrapperProvider
from strata_core.opening import open_store
from strata_core.options import Offload
from strata_core.plugins import PluginSet
from strata_core.records import Checkpoint, CheckpointStatus

HOOKS: dict[str, type[Any]] = {
    "strata_checkpoint_store": StoreProvider,
    "strata_checkpoint_query": QueryProvider,
    "strata_checkpoint_retention": RetentionProvider,
    "strata_blob_store": BlobProvider,
    "strata_wrap_checkpoint_store": WrapperProvider,
}
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


def checkpoint(state: dict[str, Any] | None = None) -> Checkpoint:
    return Checkpoint("t", CheckpointStatus.COMPLETED, state or {"step": 1}, EARLIER)


def example_of(hook: str) -> ModuleType:
    """Return the module that a hook's docstring shows."""
    doc = inspect.getdoc(getattr(hookspecs, hook))
    assert doc is not None
    after = doc.partition("\nExample:\n")[2].partition("::\n\n")[2].splitlines()
    code = itertools.takewhile(lambda line: not line or line.startswith(" " * 8), after)
    module = ModuleType(f"{hook}_example")
    exec(compile(textwrap.dedent("\n".join(code)), module.__name__, "exec"), module.__dict__)
    return module


class TestDocumentation:
    def test_every_hook_is_listed(self) -> None:
        """Nothing else in the module is a hook."""
        marked = {name for name, member in vars(hookspecs).items() if hasattr(member, "strata_core_spec")}

        assert set(HOOKS) == marked

    @pytest.mark.parametrize("hook", HOOKS)
    def test_every_hook_is_documented(self, hook: str) -> None:
        """Prose first, then what it returns, then a whole plugin that defines just this hook with its arguments."""
        doc = inspect.getdoc(getattr(hookspecs, hook)) or ""

        assert doc.index("\nReturns:\n") < doc.index("\nExample:\n")
        assert doc.index("\nReturns:\n") > 80
        assert f"@hookimpl\n        def {hook}():\n" in doc

    @pytest.mark.parametrize("hook", HOOKS)
    def test_every_hook_is_synchronous_and_takes_nothing(self, hook: str) -> None:
        """A hook describes; whatever waits or needs a URL comes later."""
        function = getattr(hookspecs, hook)

        assert {} == dict(inspect.signature(function).parameters)
        assert not inspect.iscoroutinefunction(function)

    @pytest.mark.parametrize("record", HOOKS.values())
    def test_records_are_frozen_and_compared_by_identity(self, record: type[Any]) -> None:
        """Two plugins with equal records are two plugins."""
        fields = {field.name: "file" for field in attrs.fields(record)}
        first, second = (record(**{**fields, **({"layer": "row"} if "layer" in fields else {})}) for _ in range(2))

        assert first != second
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            first.name = "other"

    def test_one_scheme_may_be_given_as_a_plain_string(self) -> None:
        """It is not taken apart into letters."""

        def open_blobs(_: str) -> Any:
            return None

        assert ("shelf",) == BlobProvider("shelf", "shelf", 1, open_blobs).schemes


class TestExamples:
    """The plugins of the docstrings, each used as its reader would."""

    @pytest.mark.parametrize("hook", HOOKS)
    def test_every_example_offers_what_its_hook_returns(self, hook: str) -> None:
        """Extracted from the docstring and registered, it answers with a valid record."""
        plugin = PluginSet([example_of(hook)]).passed[0]

        assert [HOOKS[hook]] == [*map(type, plugin.offers(HOOKS[hook]))]

    def test_the_store_keeps_checkpoints(self) -> None:
        """Everything beyond the rows comes from core."""

        async def scenario() -> tuple[int, int]:
            async with open_store("scratch://", plugins=[example_of("strata_checkpoint_store")]) as store:
                sequence = await store.save(checkpoint())
                return sequence, len((await store.list_threads()).threads)

        assert (0, 1) == asyncio.run(scenario())

    @pytest.mark.parametrize(("start", "limit", "sequences", "following"), [(0, 2, [0, 1], 2), (2, 2, [2], None)])
    def test_the_query_reads_logs(self, start: int, limit: int, sequences: list[int], following: int | None) -> None:
        """It is bound to the open store, and asked instead of it."""

        async def scenario() -> tuple[list[int], int | None]:
            async with open_store("journal://", plugins=[example_of("strata_checkpoint_query")]) as store:
                for _ in range(3):
                    await store.save(checkpoint())
                page = await store.get_log("t", start=start, limit=limit)
                assert len((await store.list_threads()).threads) == 1
                return [entry.sequence for entry in page.entries], page.next_start

        assert (sequences, following) == asyncio.run(scenario())

    def test_the_retention_purges(self) -> None:
        """It is bound to the open store, and asked instead of it."""

        async def scenario() -> int:
            async with open_store("ledger://", plugins=[example_of("strata_checkpoint_retention")]) as store:
                await store.save(checkpoint())
                return await store.purge(EARLIER + timedelta(days=1))

        assert 1 == asyncio.run(scenario())

    def test_the_blob_store_takes_large_values(self) -> None:
        """What is offloaded is there, and it goes with its thread."""
        module = example_of("strata_blob_store")
        text = "x" * 100
        content = f'"{text}"'.encode()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"

        async def scenario() -> list[Any]:
            async with open_store(
                "memory://", offload=Offload(threshold=50, blobs="shelf:top"), plugins=[module]
            ) as store:
                await store.save(checkpoint({"text": text}))
                shelf = module.SHELVES["shelf:top"]
                kept = await shelf.get("t", digest)
                entry = await store.load("t")
                await store.purge(EARLIER + timedelta(days=1))
                return [kept, entry and entry.checkpoint.frozen_state, await shelf.get("t", digest)]

        assert [content, {"text": text}, None] == asyncio.run(scenario())

    def test_the_wrapper_sees_every_save(self, caplog: pytest.LogCaptureFixture) -> None:
        """Everything else passes through, the capabilities too."""
        plugins = [example_of("strata_wrap_checkpoint_store")]

        async def scenario(wrappers: list[str]) -> Any:
            async with open_store("memory://", wrappers=wrappers, plugins=plugins) as store:
                await store.save(checkpoint())
                assert await store.load("t") is not None
                return store.capabilities

        with caplog.at_level(logging.INFO, logger="audit"):
            plain = asyncio.run(scenario([]))
            silent = list(caplog.messages)
            audited = asyncio.run(scenario(["audit"]))

        assert plain == audited
        assert [] == silent
        assert ["t #0 is completed"] == caplog.messages
