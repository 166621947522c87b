"""Blobs as objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar, final

from strata_blobs_s3._address import check_bucket, check_prefix, parse_url
from strata_blobs_s3._bucket import Bucket, FalseContentError
from strata_blobs_s3._options import S3Options
from strata_core.blobs import blob_file, check_content, run_to_the_end, thread_folder
from strata_core.errors import CorruptCheckpointError, InvalidInputError, StoreClosedError, UsageError
from strata_core.ports import StoredBlob

__all__ = ["S3BlobStore"]

P = ParamSpec("P")
T = TypeVar("T")


@final
class S3BlobStore:
    """Keeps each blob in an object: ``<prefix>/<hex of the thread ID>/<64 hex digits>``.

        async with S3BlobStore("my-bucket", "strata") as blobs, open_store(url, offload=Offload(blobs=blobs)) as store:
            ...

    ``Offload(blobs="s3://my-bucket/strata")`` does the same.  Opening makes sure that the bucket is there and that the
    credentials are good.  An ID over 127 UTF-8 bytes is spelled ``sha256-<hex digest of the ID>``, as in a folder.

    A put is durable when it returns: S3 shows an object to everybody as soon as it is acknowledged, and never a part of
    it.  A large blob that is there already is not sent again.  That holds beside a purge, which may delete what a put
    has just found: core puts a blob only while its row depends on a thread that a purge would have changed, so that
    the row is refused then, and the save begins anew.

    Everything that costs time or touches a content happens in threads of this store, at most `max_connections` at
    once: no hashing, no copying and no network on the event loop.  Any number of tasks and loops may use it.  A
    cancelled `put` or `delete_thread` returns once its thread has come to an end, so that nothing happens behind the
    caller's back; a cancelled `get` returns at once.

    Args:
        bucket: Its name; it must exist.
        prefix: Where in it, without slashes around; stores with different prefixes never see each other's blobs unless
            one is a part of the other.
        options: How to reach it.

    Raises:
        InvalidInputError: An argument breaks a rule.
    """

    def __init__(self, bucket: str, prefix: str = "", *, options: S3Options | None = None) -> None:
        if options is not None and not isinstance(options, S3Options):
            raise InvalidInputError("options", f"must be S3Options or None, not {type(options).__name__}")
        self._name = check_bucket(bucket)
        self._prefix = check_prefix(prefix)
        self._options = options if options is not None else S3Options()
        self._workers: ThreadPoolExecutor | None = None
        self._bucket: Bucket | None = None

    @classmethod
    def from_url(cls, url: str) -> S3BlobStore:
        """Return the store of a URL, ``s3://bucket/prefix?region=…``, whose query has `S3Options` by name.

        Raises:
            InvalidInputError: The URL names no bucket, or says something that is no option.
        """
        bucket, prefix, options = parse_url(url)
        return cls(bucket, prefix, options=options)

    @property
    def options(self) -> S3Options:
        """How it is reached."""
        return self._options

    @property
    def url(self) -> str:
        """Bucket and prefix, without options."""
        return f"s3://{self._name}/{self._prefix}".rstrip("/")

    def __repr__(self) -> str:
        return f"<S3BlobStore {self.url}>"

    async def __aenter__(self) -> Self:
        """Connect, and see whether the bucket can be used.

        Raises:
            InvalidInputError: There is no such profile or region, or boto3 does not take the endpoint.
            StoreUnavailableError: It cannot; the text says why, and what to do.
            UsageError: It is open already.
        """
        if self._workers is not None:
            raise UsageError(f"{self!r} is open already")
        self._workers = workers = ThreadPoolExecutor(self._options.max_connections, "strata-blobs-s3")
        try:
            self._bucket = await run_to_the_end(self._connected, workers)
            await self.ping()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Refuse new calls, wait for those under way, and let go of the connections.  Idempotent."""
        workers, bucket = self._workers, self._bucket
        self._workers = self._bucket = None
        if workers is None:
            return

        def let_go() -> None:
            workers.shutdown()
            if bucket is not None:
                bucket.close()

        try:
            await run_to_the_end(let_go)
        except asyncio.CancelledError:
            workers.shutdown(wait=False)  # the loop's own threads may all have been busy, and nobody can close again
            raise

    async def ping(self) -> None:
        """Ask the service whether the bucket is there and can be listed.

        Raises:
            StoreUnavailableError: It is not, or the service does not answer.
        """
        await self._read(Bucket.check)

    async def put(self, thread_id: str, digest: str, content: bytes) -> None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        await self._write(Bucket.put, f"{folder}/{name}", name, check_content(content))

    async def get(self, thread_id: str, digest: str) -> bytes | None:
        folder, name = thread_folder(thread_id), blob_file(digest)
        try:
            return await self._read(Bucket.get, f"{folder}/{name}", name)
        except FalseContentError as error:
            problem = f"has a blob {digest} in {self.url}, whose content does not match that hash"
            raise CorruptCheckpointError(thread_id, None, problem) from error

    async def delete_thread(self, thread_id: str) -> None:
        await self._write(Bucket.delete, thread_folder(thread_id))

    async def list_blobs(self) -> AsyncIterator[StoredBlob]:
        token = None
        while True:
            blobs, token = await self._read(Bucket.page, token)
            for blob in blobs:
                yield blob
            if token is None:
                return

    async def _read(self, work: Callable[Concatenate[Bucket, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        workers, bucket = self._opened()
        return await asyncio.get_running_loop().run_in_executor(workers, partial(work, bucket, *args, **kwargs))

    async def _write(self, work: Callable[Concatenate[Bucket, P], None], *args: P.args, **kwargs: P.kwargs) -> None:
        workers, bucket = self._opened()
        await run_to_the_end(partial(work, bucket, *args, **kwargs), workers)

    def _opened(self) -> tuple[ThreadPoolExecutor, Bucket]:
        if self._workers is None or self._bucket is None:
            raise StoreClosedError(f"{self!r} is not open; use it inside 'async with'")
        return self._workers, self._bucket

    def _connected(self) -> Bucket:
        return Bucket(self._name, f"{self._prefix}/" if self._prefix else "", self.url, self._options)
