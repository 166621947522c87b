"""The store that a command reads: `--storage` and `--blobs`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Concatenate, Final, ParamSpec, TypeVar

import attrs
import click

from strata_core.capabilities import Capability
from strata_core.errors import UnsupportedError
from strata_core.options import Offload, Setup
from strata_core.ports import BlobStore, StorePorts
from strata_host.cli._entered import entered
from strata_host.cli._errors import opening, querying

__all__ = ["Source", "json_option", "shared_url", "source_options"]

P = ParamSpec("P")
T = TypeVar("T")


@attrs.frozen
class Source:
    """Where to read.

    Attributes:
        storage: A path or URL.  May hold a password, so it is not shown.
        blobs: A folder or a blob URL; None is the store's own database.  Not shown for the same reason.
        storage_option: The option that named the storage, for errors.
        blobs_option: The option that named the blobs, for errors.
    """

    storage: str = attrs.field(repr=False)
    blobs: str | None = attrs.field(repr=False)
    storage_option: str = "'--storage'"
    blobs_option: str = "'--blobs'"

    def read(self, work: Callable[[StorePorts], Awaitable[T]]) -> T:
        """Open the store, do `work` on it, close it, and return the result.

        Raises:
            click.UsageError: The options name no store, or an argument breaks a rule; exit code 2.
            CommandError: The store cannot be opened, or the query failed; exit code 1.
        """

        async def run() -> T:
            async with self.opened() as store:
                with querying():
                    return await work(store)

        return asyncio.run(run())

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

        options = self.storage_option, self.blobs_option
        with opening(*options):
            context = open_blobs(_blobs(blobs, self.blobs_option))
        async with entered(context, *options) as found, attrs.evolve(self, blobs=None).opened() as store:
            with querying():
                return await work(store, found)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[StorePorts]:
        """Open the store, read-only where it can do that, and without setup in any case.

        Raises:
            click.UsageError: The options name no store; exit code 2.
            CommandError: The store cannot be opened or closed; exit code 1.
        """
        options = self.storage_option, self.blobs_option
        with opening(*options):
            url = _storage(self.storage, self.storage_option)
            offload = None if self.blobs is None else Offload(blobs=_blobs(self.blobs, self.blobs_option))
        async with entered(_opened_to_read(url, offload), *options) as store:
            yield store


@asynccontextmanager
async def _opened_to_read(url: str, offload: Offload | None) -> AsyncIterator[StorePorts]:
    from strata_core.opening import open_store

    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(open_store(url, offload=offload, read_only=True, setup=Setup.NEVER))
        except UnsupportedError as error:
            if error.capability is not Capability.READ_ONLY:
                raise
            # It knows no read-only open; whoever has a source only ever reads.
            store = await stack.enter_async_context(open_store(url, offload=offload, setup=Setup.NEVER))
        yield store


def shared_url(storage: str, option: str) -> str:
    """Return the URL of a store that others can open too.

    Raises:
        click.BadParameter: It is memory of this process.
    """
    from strata_core.urls import scheme_of, store_url

    url = store_url(storage)
    if scheme_of(url) == "memory":
        problem = "memory:// is private to a process: this command would find nothing in it, and leave nothing"
        raise click.BadParameter(problem, param_hint=option)
    return url


def _storage(storage: str, option: str) -> str:
    from strata_core.urls import database_path, scheme_of

    url = shared_url(storage, option)
    if scheme_of(url) == "sqlite":  # also a bare path
        path = database_path(url)
        if not _holds(path.exists):
            raise click.BadParameter(f"{storage!r} does not exist", param_hint=option)
        if path.is_dir():
            raise click.BadParameter(f"{storage!r} is a folder, not a database file", param_hint=option)
    return url


def _blobs(blobs: str, option: str) -> str:
    from strata_core.urls import blob_url, folder_path, scheme_of

    url = blob_url(blobs)
    if scheme_of(url) == "file" and not _holds(folder_path(url).is_dir):
        raise click.BadParameter(f"{blobs!r} is not a folder", param_hint=option)
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
