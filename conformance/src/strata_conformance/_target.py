"""What the command tests: a storage that a URL or a function names."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import secrets
import shutil
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import attrs

from strata_conformance._footprint import files
from strata_conformance._scope import MARK, Scope, ScopedBackend
from strata_core.clock import SYSTEM_CLOCK, Clock
from strata_core.errors import InvalidInputError
from strata_core.options import Setup, StoreOptions
from strata_core.plugins import PluginSet
from strata_core.rows import RowBackend
from strata_core.urls import database_path, redact, scheme_of, store_url

__all__ = ["TTL", "VARIABLE", "Beside", "Factory", "Kind", "Target", "Url", "function"]

VARIABLE: Final = "STRATA_CONFORMANCE_TARGET"
"""How the command tells its tests what to test: not on their command line, where everybody could read a password."""
TTL: Final = "finished_thread_ttl"
"""What the option of a store is called that lets finished threads expire."""


class Kind(StrEnum):
    """What a target gives."""

    ROWS = "rows"
    """Row backends."""
    STORE = "store"
    """Whole stores, in async context managers."""
    BLOBS = "blobs"
    """Blob stores, or async context managers of them."""


@attrs.frozen
class Target:
    """What is tested.

    Attributes:
        name: The URL, or ``module:function``.
        kind: What it gives.
        folder: Where a function's storages go; empty for a URL.
    """

    name: str
    kind: Kind = attrs.field(converter=Kind)
    folder: str = ""

    @property
    def shown(self) -> str:
        """The name without secrets."""
        return self.name if self.folder else redact(self.name)

    def dump(self) -> str:
        """Return it as text for `VARIABLE`."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def given(cls) -> Target:
        """Return the target that the command put into the environment."""
        return cls(**json.loads(os.environ[VARIABLE]))


@attrs.frozen
class Url:
    """Opens row backends by URL; can be pickled, so that another process opens the same.

    Attributes:
        url: The URL.
        prefix: What the threads of the test begin with; empty for a storage that is the test's alone.
    """

    url: str
    prefix: str = ""

    def __call__(self, clock: Clock = SYSTEM_CLOCK) -> RowBackend:
        backend = self.bare(clock)
        return ScopedBackend(backend, Scope(self.prefix)) if self.prefix else backend

    def expiring(self) -> Callable[[timedelta], Any] | None:
        """Return what makes the store's options from a ttl of finished threads; None when it has no such option."""
        options = PluginSet().store(scheme_of(store_url(self.url)) or "").store.options_class
        if options is None or TTL not in inspect.signature(options).parameters:
            return None
        return lambda ttl: options(**{TTL: ttl})

    def bare(
        self,
        clock: Clock = SYSTEM_CLOCK,
        *,
        read_only: bool = False,
        setup: Setup = Setup.AUTO,
        options: Any = None,
    ) -> RowBackend:
        """Return a backend that shows everything there is.

        Raises:
            PluginError: No plugin serves the URL.
            InvalidInputError: The plugin refuses it, or gives a whole store.
        """
        url = store_url(self.url)
        parts = PluginSet().store(scheme_of(url) or "")
        opened = parts.store.open(url, StoreOptions(read_only=read_only, setup=setup, clock=clock, backend=options))
        if not isinstance(opened, RowBackend):
            raise InvalidInputError(
                "TARGET",
                f"{redact(url)} opens a whole store, whose listings and purges cannot be confined to threads of the "
                "tests: give module:function, which makes storages for the tests alone",
            )
        return opened


@attrs.frozen
class Factory:
    """Calls the function of a target for one storage; can be pickled.

    Attributes:
        name: ``module:function``.
        path: The storage.
    """

    name: str
    path: str

    def __call__(self, clock: Clock = SYSTEM_CLOCK, **options: Any) -> Any:
        given = {"clock": clock} if self.takes("clock") else {}
        return function(self.name)(path=Path(self.path), **given, **options)

    def takes(self, name: str) -> bool:
        """Tell whether the function has such an argument."""
        return name in inspect.signature(function(self.name)).parameters

    def footprint(self) -> dict[str, object]:
        """Return what stands in the storage: at its path, and whatever the function's own ``footprint`` tells."""
        more = getattr(function(self.name), "footprint", None)
        path = Path(self.path)
        return files(path.parent, path.parent.glob(f"{path.name}*")) | ({} if more is None else dict(more(path)))

    def remove(self) -> None:
        """Remove the storage: what stands at its path, and whatever the function's own ``remove`` takes away."""
        remove = getattr(function(self.name), "remove", None)
        if remove is not None:
            remove(Path(self.path))
        for path in Path(self.path).parent.glob(f"{Path(self.path).name}*"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


@attrs.frozen
class Beside:
    """A place beside the file or folder that a URL names, where nothing is yet.

    Attributes:
        url: How it is opened.
        path: Where it is.
        storage: The file or folder that the command was given.
    """

    url: str
    path: Path
    storage: Path

    @classmethod
    def of(cls, url: str) -> Beside | None:
        """Return a new place beside the storage of a URL; None for one that is no file or folder."""
        try:
            storage = database_path(url).absolute()
        except InvalidInputError:
            return None
        if not storage.exists():
            return None
        path = storage.with_name(MARK + secrets.token_hex(6) + storage.suffix)
        return cls(f"{scheme_of(url)}:///{quote(str(path))}", path, storage)

    def footprint(self) -> dict[str, object]:
        """Return what stands there, and what the storage of the command holds."""
        return files(self.path.parent, [*self._found(self.path), *self._found(self.storage)])

    def remove(self) -> None:
        """Remove whatever came there."""
        for path in self._found(self.path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    @staticmethod
    def _found(path: Path) -> list[Path]:
        return [found for found in path.parent.iterdir() if found.name.startswith(path.name)]


def function(name: str) -> Callable[..., Any]:
    """Return what ``module:function`` names.

    Raises:
        InvalidInputError: There is no such function, or it does not take a path.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError("TARGET", f"{name} cannot be imported from here: {error}") from error
    if not callable(found):
        raise InvalidInputError("TARGET", f"{name} is no function, but a {type(found).__name__}")
    if "path" not in inspect.signature(found).parameters:
        raise InvalidInputError("TARGET", f"{name} must take an argument named 'path', and may take 'clock'")
    return cast(Callable[..., Any], found)
