"""Stores to look into, and the command to do it with."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

import attrs
import pytest
from click.testing import CliRunner, Result

from strata_core.records import Checkpoint, CheckpointStatus
from strata_core.store import RowStore
from strata_core.testing import FakeClock

PLUGINS = str(Path(__file__).parent / "plugins")
COMMAND = (sys.executable, "-m", "strata_host")
AT = datetime(2026, 10, 30, 14, 49, 52, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the test store findable, and nothing of the caller's environment matter."""
    monkeypatch.syspath_prepend(PLUGINS)
    for name in (
        "STRATA_STORAGE",
        "STRATA_BLOBS",
        "STRATA_TARGET",
        "STRATA_DEBUG",
        "STRATA_DISABLE_PLUGINS",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)


def make_checkpoint(thread_id: str = "report-1", **changes: Any) -> Checkpoint:
    """Return a checkpoint, interrupted unless `changes` say otherwise."""
    fields: dict[str, Any] = {
        "thread_id": thread_id,
        "status": CheckpointStatus.INTERRUPTED,
        "frozen_state": {"step": 1},
        "created_at": AT,
        "suspended_node": "Draft",
        "next_node": "Review",
    }
    return Checkpoint(**fields | changes)


@attrs.frozen
class Shelf:
    """One store on disk that tests fill, and its URL."""

    path: Path
    clock: FakeClock

    @property
    def url(self) -> str:
        return f"jsonl:///{self.path}"

    def write(self, work: Callable[[RowStore], Any], **options: Any) -> Any:
        """Do async `work` on the store, open for writing."""
        from strata_jsonl import JsonLinesBackend  # type: ignore[import-not-found]  # in `plugins`

        async def run() -> Any:
            async with RowStore(JsonLinesBackend(self.path, self.clock), **options) as store:
                return await work(store)

        return asyncio.run(run())

    def save(self, *checkpoints: Checkpoint, **options: Any) -> None:
        """Append checkpoints in order."""

        async def work(store: RowStore) -> None:
            for checkpoint in checkpoints:
                await store.save(checkpoint)

        self.write(work, **options)

    def revision(self, thread_id: str) -> str:
        """Return the text of the revision of a thread's latest checkpoint."""

        async def work(store: RowStore) -> str:
            entry = await store.load(thread_id)
            assert entry is not None
            return str(entry.revision)

        return cast("str", self.write(work))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    # The command reads the machine's clock; what is leased on a clock far ahead stays leased.
    shelf = Shelf(tmp_path / "threads.jsonl", FakeClock(datetime(9000, 1, 1, tzinfo=UTC)))
    shelf.save()
    return shelf


class Strata(Protocol):
    def __call__(self, *args: str, code: int | None = 0, **env: str) -> Result: ...


@pytest.fixture
def strata() -> Strata:
    """Run the command in this process, and check its exit code; None is any."""

    def run(*args: str, code: int | None = 0, **env: str) -> Result:
        from strata_host.cli import strata as command

        result = CliRunner().invoke(command, args, prog_name="strata", env=env)

        assert code in {None, result.exit_code}, result.output
        return result

    return run


@pytest.fixture
def look(strata: Strata, shelf: Shelf) -> Strata:
    """Run the command on the shelf."""

    def run(*args: str, code: int | None = 0, **env: str) -> Result:
        return strata(*args, code=code, STRATA_STORAGE=shelf.url, **env)

    return run


@pytest.fixture
def look_json(look: Strata) -> Callable[..., Any]:
    """Run the command with `--json` on the shelf, and parse what it writes."""

    def run(*args: str) -> Any:
        result = look(*args, "--json")

        assert result.stdout.isascii()
        return json.loads(result.stdout)

    return run


class Process(Protocol):
    def __call__(self, *args: str, **options: Any) -> subprocess.Popen[bytes]: ...


@pytest.fixture
def process(shelf: Shelf) -> Iterator[Process]:
    """Start the command as a process of its own, on the shelf."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        *args: str, command: Sequence[str] = COMMAND, env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        variables = environment(**{"STRATA_STORAGE": shelf.url} | (env or {}))
        child: subprocess.Popen[bytes] = subprocess.Popen([*command, *args], env=variables, **pipes | options)
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.wait()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()


def environment(**changes: str) -> dict[str, str]:
    """Return the environment for a child that finds the test store."""
    paths = [PLUGINS, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | changes


@pytest.fixture
def checkpoint() -> Callable[..., Checkpoint]:
    return make_checkpoint
