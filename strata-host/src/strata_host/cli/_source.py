"""The store that a command reads: `--storage` and `--blobs`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

import attrs
import click

from strata_core.capabilities import Capability
from strata_core.errors import UnsupportedError
from strata_core.options import Offload, Setup
from strata_core.ports import BlobStore, StorePorts
from strata_host.cli._errors import opening, querying

__all__ = ["Source", "json_option", "source_options"]

P = ParamSpec("P")
T = TypeVar("T")


@attrs.frozen
class Source:
    """Where to read.

    Attributes:
        storage: A path or URL.  May hold a password, so it is not shown.
        blobs: A folder or a blob URL; None is the store's own database.  Not shown for the same reason.
    """

    storage: str = attrs.field(repr=False)
    blobs: str | None = attrs.field(repr=False)

    def read(self, work: Callable[[StorePorts], Awaitable[T]]) -> T:
        """Open the store, do `work` on it, close it, and return the result.

        It is opened read-only where the store can do that, and without setup in any case.

        Raises:
            click.UsageError: The options name no store, or an argument breaks a rule; exit code 2.
            CommandError: The store cannot be opened, or the query failed; exit code 1.
        """
        return asyncio.run(self._read(work, self.blobs))

    def read_with_blobs(self, work: Callable[[StorePorts, BlobStore], Awaitable[T]]) -> T:
        """Open the store and the blob store beside each other, do `work` on both, and return the result.

        Raises:
            click.UsageError: As for `read`; also where no blob store was given.
            CommandError: As for `read`.
        """
        if self.blobs is None:
            raise click.UsageError("missing option '--blobs' (env var: 'STRATA_BLOBS'): the blob store to look at")
        return asyncio.run(self._read_with_blobs(self.blobs, work))

    async def _read_with_blobs(self, blobs: str, work: Callable[[StorePorts, BlobStore], Awaitable[T]]) -> T:
        from strata_core.opening import open_blobs

        with opening():
            opened = open_blobs(_blobs(blobs))
            found = await opened.__aenter__()
        try:
            return await self._read(lambda store: work(store, found), None)
        finally:
            with querying():
                await opened.__aexit__(None, None, None)

    async def _read(self, work: Callable[[StorePorts], Awaitable[T]], blobs: str | None) -> T:
        from strata_core.opening import open_store

        with opening():
            url = _storage(self.storage)
            offload = None if blobs is None else Offload(blobs=_blobs(blobs))
            opened = open_store(url, offload=offload, read_only=True, setup=Setup.NEVER)
            try:
                store = await opened.__aenter__()
            except UnsupportedError as error:
                if error.capability is not Capability.READ_ONLY:
                    raise
                # It knows no read-only open; the commands only ever read.
                opened = open_store(url, offload=offload, setup=Setup.NEVER)
                store = await opened.__aenter__()
        try:
            with querying():
                return await work(store)
        finally:
            with querying():
                await opened.__aexit__(None, None, None)


def _storage(storage: str) -> str:
    from strata_core.urls import database_path, scheme_of, store_url

    url = store_url(storage)
    if scheme_of(url) == "memory":
        problem = "memory:// is private to a process, so there is nothing in it that a command could read"
        raise click.BadParameter(problem, param_hint="'--storage'")
    if scheme_of(url) == "sqlite":  # also a bare path
        path = database_path(url)
        if not _holds(path.exists):
            raise click.BadParameter(f"{storage!r} does not exist", param_hint="'--storage'")
        if path.is_dir():
            raise click.BadParameter(f"{storage!r} is a folder, not a database file", param_hint="'--storage'")
    return url


def _blobs(blobs: str) -> str:
    from strata_core.urls import blob_url, folder_path, scheme_of

    url = blob_url(blobs)
    if scheme_of(url) == "file" and not _holds(folder_path(url).is_dir):
        raise click.BadParameter(f"{blobs!r} is not a folder", param_hint="'--blobs'")
    return url


def _holds(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:  # a folder on the way that may not be entered, a name that is too long
        return False


def source_options(command: Callable[Concatenate[Source, P], T]) -> Callable[..., T]:
    """Give a command `--storage` and `--blobs`, and pass them as its first argument, a `Source`."""

    @click.option(
        "--storage",
        required=True,
        envvar="STRATA_STORAGE",
        show_envvar=True,
        metavar="PATH|URL",
        help="The store: a SQLite file, or a URL that an installed plugin serves; see 'strata plugins'.",
    )
    @click.option(
        "--blobs",
        envvar="STRATA_BLOBS",
        show_envvar=True,
        metavar="FOLDER|URL",
        help="Where offloaded values are, when not in the store's own database.",
    )
    @functools.wraps(command)
    def with_source(storage: str, blobs: str | None, *args: P.args, **kwargs: P.kwargs) -> T:
        return command(Source(storage, blobs), *args, **kwargs)

    return with_source


json_option: Final = click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
