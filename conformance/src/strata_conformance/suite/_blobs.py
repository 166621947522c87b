"""Blob stores."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from strata_conformance._interrupt import CancelAt
from strata_conformance._promise import promise
from strata_conformance._samples import THREAD_IDS
from strata_conformance.suite._bad import BAD_THREAD_IDS
from strata_conformance.suite._base import SuiteTests
from strata_core.blobs import thread_folder
from strata_core.errors import InvalidInputError
from strata_core.ports import BlobStore, StoredBlob

__all__ = ["BlobStoreTests", "OpenBlobs"]

OpenBlobs: TypeAlias = Callable[[], Any]


def digest_of(content: bytes) -> str:
    """Return the name of a blob with this content."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


@asynccontextmanager
async def opened(blobs: Any) -> AsyncIterator[BlobStore]:
    """Enter a blob store that is a context manager; take any other as it is."""
    if hasattr(blobs, "__aenter__"):
        async with blobs as entered:
            yield entered
    else:
        yield blobs


A, B = b'"first"', b'"second"'
BAD_DIGESTS: list[Any] = [
    None,
    1,
    b"sha256:" + b"0" * 64,
    "",
    "0" * 64,
    "sha256:",
    "sha256:" + "0" * 63,
    "sha256:" + "0" * 65,
    "sha256:" + "A" * 64,
    "sha256:" + "g" * 64,
    "sha512:" + "0" * 64,
    "SHA256:" + "0" * 64,
    "sha256:../../../../etc/passwd",
    "sha256:" + "0" * 63 + "/",
    "sha256:" + "0" * 64 + "\n",
    " sha256:" + "0" * 64,
    "sha256:" + "\u0660" * 64,
]


class BlobStoreTests(SuiteTests):
    """Content-addressed values, per thread."""

    @pytest.fixture
    def open_blobs(self) -> OpenBlobs:
        """A factory of blob stores; the author's one fixture.

        Each call gives another handle on the same storage, which is empty when the test begins: a `BlobStore`, or an
        async context manager that gives one.
        """
        pytest.fail(f"{type(self).__name__} must define the fixture 'open_blobs'", pytrace=False)

    @promise("blob-1")
    async def test_a_blob_comes_back_as_it_was_put(self, open_blobs: OpenBlobs) -> None:
        """A blob comes back byte for byte, from this handle and any other: empty, of any bytes, of megabytes."""
        contents = [
            b"",
            A,
            bytes(range(256)),
            b"\x00" * 1000,
            b"\r\n\n\r",
            "\u00e9\U0001f600".encode(),
            b"z" * 5_000_000,
        ]
        async with opened(open_blobs()) as one, opened(open_blobs()) as two:
            for content in contents:
                await one.put("t", digest_of(content), content)
            got = [await one.get("t", digest_of(content)) for content in contents]
            seen = [await two.get("t", digest_of(content)) for content in contents]

        assert contents == got == seen

    @promise("blob-2")
    async def test_what_was_not_put_is_not_there(self, open_blobs: OpenBlobs) -> None:
        """A blob that the thread does not have is None: another thread's blob, an unknown digest, an unknown thread."""
        async with opened(open_blobs()) as blobs:
            await blobs.put("t", digest_of(A), A)
            got = [
                await blobs.get("t", digest_of(B)),
                await blobs.get("other", digest_of(A)),
                await blobs.get("unknown", digest_of(B)),
            ]

        assert [None] * 3 == got

    @promise("blob-3")
    async def test_blobs_outlive_the_handle(self, open_blobs: OpenBlobs) -> None:
        """A blob is there when the storage is closed and opened again."""
        async with opened(open_blobs()) as blobs:
            await blobs.put("t", digest_of(A), A)
        async with opened(open_blobs()) as blobs:
            got = await blobs.get("t", digest_of(A))

        assert A == got

    @promise("blob-4")
    async def test_putting_again_changes_nothing(self, open_blobs: OpenBlobs) -> None:
        """The same blob may be put any number of times, one after another and at once, from several handles, and is
        whole for whoever reads meanwhile.
        """
        content = b"y" * 300_000
        async with opened(open_blobs()) as one, opened(open_blobs()) as two:
            puts = [(one if n % 2 else two).put("t", digest_of(content), content) for n in range(20)]
            reads = [(two if n % 2 else one).get("t", digest_of(content)) for n in range(20)]
            mixed = await asyncio.gather(*(call for pair in zip(puts, reads, strict=True) for call in pair))
            puts = [(one if n % 2 else two).put("t", digest_of(content), content) for n in range(20)]
            reads = [(two if n % 2 else one).get("t", digest_of(content)) for n in range(20)]
            again = await asyncio.gather(*(call for pair in zip(puts, reads, strict=True) for call in pair))
            await one.put("t", digest_of(content), content)
            got = await two.get("t", digest_of(content))

        assert {None, content} >= set(mixed[1::2])
        assert {content} == set(again[1::2])
        assert content == got

    @promise("blob-5")
    async def test_deleting_takes_all_blobs_of_one_thread(self, open_blobs: OpenBlobs) -> None:
        """delete_thread takes every blob of the thread and none of another, though the content is the same; deleting
        again, or a thread without blobs, is no error; the thread can have blobs again.
        """
        async with opened(open_blobs()) as one, opened(open_blobs()) as two:
            for thread in ("t", "t1", "T"):
                for content in (A, B):
                    await one.put(thread, digest_of(content), content)
            await one.delete_thread("t")
            await one.delete_thread("t")
            await two.delete_thread("t")
            await one.delete_thread("unknown")
            gone = [await two.get("t", digest_of(content)) for content in (A, B)]
            kept = [await two.get(thread, digest_of(content)) for thread in ("t1", "T") for content in (A, B)]
            await two.put("t", digest_of(A), A)
            again = [await one.get("t", digest_of(content)) for content in (A, B)]

        assert [None, None] == gone
        assert [A, B, A, B] == kept
        assert [A, None] == again

    @promise("blob-6")
    async def test_threads_of_any_id_are_kept_apart(self, open_blobs: OpenBlobs) -> None:
        """Threads whose IDs differ in any way share no blob, and deleting one leaves all others."""
        name = digest_of(A)
        # No pair of rounds is another's, so that for any two threads there is a round in which one is deleted and the
        # other is not.  One by one, a store behind a network would take minutes.
        rounds = dict(zip(THREAD_IDS, itertools.combinations(range(10), 2), strict=False))
        missing = set(THREAD_IDS)
        async with opened(open_blobs()) as blobs:
            for nth in range(10):
                await asyncio.gather(*(blobs.put(thread, name, A) for thread in missing))
                missing = {thread for thread in THREAD_IDS if nth in rounds[thread]}
                await asyncio.gather(*map(blobs.delete_thread, missing))
                found = await asyncio.gather(*(blobs.get(thread, name) for thread in THREAD_IDS))

                assert [None if thread in missing else A for thread in THREAD_IDS] == found

    @promise("blob-7")
    @pytest.mark.parametrize("call", ["put", "get", "delete_thread"])
    async def test_bad_arguments_are_refused(self, open_blobs: OpenBlobs, call: str) -> None:
        """A thread ID that breaks the rules, a digest that is not "sha256:" with 64 lower-case hex digits, and content
        that is no bytes raise InvalidInputError that names the argument, and touch nothing.
        """
        good: dict[str, Any] = {"thread_id": "t", "digest": digest_of(A), "content": A}
        names = {"put": ("thread_id", "digest", "content"), "get": ("thread_id", "digest")}.get(call, ("thread_id",))
        bad = {"thread_id": BAD_THREAD_IDS, "digest": BAD_DIGESTS, "content": [None, "text", 5, [1], memoryview(A)]}
        expected, got = [], []
        async with opened(open_blobs()) as blobs:
            for name in names:
                for value in bad[name]:
                    expected.append((name, ascii(value)[:60], name))
                    arguments = [(good | {name: value})[n] for n in names]
                    try:
                        outcome = f"returned {await getattr(blobs, call)(*arguments)!r}"
                    except InvalidInputError as error:
                        outcome = error.argument
                    except Exception as error:  # noqa: BLE001  # any other error is a finding
                        outcome = f"raised {type(error).__name__}: {error}"
                    got.append((name, ascii(value)[:60], outcome))
            untouched = await blobs.get("t", digest_of(A))

        assert expected == got
        assert untouched is None

    @promise("blob-8")
    @pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
    async def test_a_cancelled_put_or_delete_is_done_or_not_done(self, open_blobs: OpenBlobs, late: bool) -> None:
        """A put that is cancelled at any await has stored the whole blob or nothing, a delete takes each blob whole;
        the store goes on.
        """
        content = b"w" * 200_000
        name = digest_of(content)
        async with opened(open_blobs()) as blobs, opened(open_blobs()) as other:
            for nth in range(1, 100):
                put = CancelAt(blobs.put(f"t{nth}", name, content), nth, late=late)
                outcome = await put.outcome()
                assert isinstance(outcome, asyncio.CancelledError) if put.reached else outcome is None
                assert await other.get(f"t{nth}", name) in (None, content)
                await blobs.put(f"t{nth}", name, content)
                assert content == await other.get(f"t{nth}", name)
                delete = CancelAt(blobs.delete_thread(f"t{nth}"), nth, late=late)
                await delete.outcome()
                assert await other.get(f"t{nth}", name) in (None, content)
                await blobs.delete_thread(f"t{nth}")
                assert await other.get(f"t{nth}", name) is None
                if not put.reached and not delete.reached:
                    return

    @promise("blob-9")
    async def test_a_store_that_lists_lists_every_blob_once(self, open_blobs: OpenBlobs) -> None:
        """A blob store that can list its blobs (`BlobListing`) yields each once, those of a thread one after another,
        with its thread's folder, digest, size and an aware time; also from another handle, and none that was deleted.
        """
        contents = [A, B, b"", b"x" * 1000]
        threads = [*THREAD_IDS[:6], THREAD_IDS[-1]]
        async with opened(open_blobs()) as one, opened(open_blobs()) as two:
            if not hasattr(one, "list_blobs"):
                pytest.skip("this blob store does not list its blobs, which is optional")
            before = await _listed(two)
            await asyncio.gather(*(one.put(t, digest_of(content), content) for t in threads for content in contents))
            await one.put(threads[0], digest_of(A), A)
            await one.delete_thread(threads[1])
            found = await _listed(two)
        folders = [blob.folder for blob in found]
        kept = [thread for thread in threads if thread != threads[1]]

        assert [] == before
        assert sorted(
            (thread_folder(t), digest_of(content), len(content)) for t in kept for content in contents
        ) == sorted((blob.folder, blob.digest, blob.size) for blob in found)
        assert len(kept) == len([folder for folder, _ in itertools.groupby(folders)])
        assert all(blob.stored_at.utcoffset() is not None for blob in found)


async def _listed(blobs: Any) -> list[StoredBlob]:
    return [blob async for blob in blobs.list_blobs()]
