"""Throw-away distributions: a folder with a module and its metadata, as an installer leaves them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest


class Install(Protocol):
    def __call__(
        self,
        name: str,
        version: str = "1.0",
        *,
        stores: Mapping[str, str] | None = None,
        blobs: Mapping[str, str] | None = None,
        wrappers: Mapping[str, str] | None = None,
        modules: Mapping[str, str] | None = None,
        entry_points: str | None = None,
        metadata: str | None = None,
    ) -> Path: ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install distributions for this test only; each gets a folder of its own, first on the path."""
    monkeypatch.delenv("STRATA_DISABLE_PLUGINS", raising=False)
    known = set(sys.modules)

    def install(
        name: str,
        version: str = "1.0",
        *,
        stores: Mapping[str, str] | None = None,
        blobs: Mapping[str, str] | None = None,
        wrappers: Mapping[str, str] | None = None,
        modules: Mapping[str, str] | None = None,
        entry_points: str | None = None,
        metadata: str | None = None,
    ) -> Path:
        site = tmp_path / f"site-{len(list(tmp_path.iterdir()))}"
        folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (folder / "METADATA").write_text(metadata)
        if entry_points is None:
            groups = {"strata_core.stores": stores, "strata_core.blobs": blobs, "strata_core.wrappers": wrappers}
            entry_points = "".join(
                f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
                for group, entries in groups.items()
                if entries
            )
        (folder / "entry_points.txt").write_text(entry_points)
        for module, source in (modules or {}).items():
            (site / f"{module}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(site)
        return site

    yield install
    for module in set(sys.modules) - known:
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]


STORE = """
    from strata_core.hookspecs import StoreProvider, hookimpl

    def open_store(url, options):
        from strata_core.memory import MemoryBackend

        return MemoryBackend(clock=options.clock)

    @hookimpl
    def strata_checkpoint_store():
        return StoreProvider(name="{name}", schemes={schemes!r}, port_version={port_version}, open=open_store)
"""


@pytest.fixture
def store_module() -> StoreModule:
    """Return the source of a plugin module that serves a store."""

    def source(name: str, *schemes: str, port_version: int = 1) -> str:
        return STORE.format(name=name, schemes=schemes or (name,), port_version=port_version)

    return source


class StoreModule(Protocol):
    def __call__(self, name: str, *schemes: str, port_version: int = 1) -> str: ...
