"""Looks at a target before anything is written: what it gives, and whether it is anybody's."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any, Final

from strata_conformance._scope import MARK
from strata_conformance._target import Factory, Kind, Target, Url
from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError, ReadOnlyError, SchemaVersionError, StoreUnavailableError
from strata_core.options import Setup
from strata_core.rows import HeadQuery, RowBackend
from strata_core.urls import database_path, redact

__all__ = ["Traces", "foreign_thread", "kind_of"]


class Traces:
    """What a URL that names a file makes beside nothing: the file and its companions, to be removed afterwards.

    Only what was not there when this was made and is there when `made` is told belongs to the run; a path that came
    later is somebody else's.
    """

    def __init__(self, url: str) -> None:
        self._path: Path | None = None
        try:
            path = database_path(url).absolute()
        except InvalidInputError:
            return
        if not path.exists() and path.name:
            self._path = path
        self._before: Final = frozenset(_beside(path))
        self._ours = False

    def made(self) -> None:
        """Tell that the storage was opened just now."""
        self._ours = self._path is not None and self._path.exists()

    def remove(self) -> None:
        """Remove what the run made."""
        if self._path is None or not self._ours:
            return
        for path in _beside(self._path):
            if path in self._before:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _beside(path: Path) -> list[Path]:
    """Return the file and its companions, whose names go on from its own after a dash, a dot or a tilde."""
    if not path.parent.is_dir():
        return []
    names = (path.name, *(path.name + mark for mark in "-.~"))
    return [p for p in path.parent.iterdir() if p.name == names[0] or p.name.startswith(names[1:])]


async def foreign_thread(url: Url) -> str | None:
    """Return a thread that the storage holds; None for none.

    A storage that can be opened read-only is: looking at it changes nothing.

    Raises:
        UnsupportedError: The backend cannot list its threads.
        StrataError: The storage cannot be opened.
    """
    backend = url.bare()
    read_only = Capability.READ_ONLY in backend.capabilities
    if Capability.QUERY not in backend.capabilities:
        raise InvalidInputError(
            "TARGET", f"{redact(url.url)} cannot list its threads, so it may hold somebody's: give --allow-existing"
        )
    backend = url.bare(read_only=read_only, setup=Setup.NEVER)
    try:
        await backend.open(read_only=read_only, setup=Setup.NEVER)
        for rowless in (False, True):
            for head in await backend.list_heads(HeadQuery(rowless=rowless, limit=1)):
                return head.thread_id
    except SchemaVersionError as error:
        if error.found != "none":
            raise
    except (StoreUnavailableError, ReadOnlyError):
        if not read_only:
            raise
        # There is nothing to read, or no way to it: opening it to write, which follows, tells.
    finally:
        await backend.close()
    return None


async def opens(url: Url) -> None:
    """Open and set up the storage once.

    Raises:
        StrataError: It cannot be opened.
    """
    backend = url.bare()
    try:
        await backend.open(read_only=False, setup=Setup.AUTO)
    finally:
        await backend.close()


async def kind_of(target: Target) -> Kind:
    """Call a target's function once, on a path of its own, and see what it gives.

    Raises:
        InvalidInputError: It gives nothing that the suite tests.
    """
    made = Factory(target.name, str(Path(target.folder, MARK + secrets.token_hex(6))))
    try:
        given: Any = made()
        if isinstance(given, RowBackend):
            return Kind.ROWS
        if hasattr(given, "__aenter__"):
            async with given as entered:
                return _kind(entered, target.name)
        return _kind(given, target.name)
    finally:
        made.remove()


def _kind(store: object, name: str) -> Kind:
    if hasattr(store, "save_under_lease"):
        return Kind.STORE
    if hasattr(store, "delete_thread"):
        return Kind.BLOBS
    raise InvalidInputError(
        "TARGET",
        f"{name} gives {type(store).__name__}: it must be a RowBackend, an async context manager of a store, or a "
        "BlobStore",
    )
