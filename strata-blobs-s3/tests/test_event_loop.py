"""Nothing whose cost depends on a blob's size happens on the event loop, and nothing that waits."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import botocore.auth
import botocore.response
import pytest
from s3_support import digest_of
from small_service import SmallService

from strata_blobs_s3 import S3BlobStore, S3Options, _bucket, _client

CONTENT = b'"' + b"x" * 8_000_000 + b'"'
BYTE_SIZED = {
    "_blake2", "_hashlib", "_md5", "_sha1", "_sha256", "_ssl", "base64", "binascii", "boto3", "botocore", "hashlib",
    "hmac", "http", "io", "ssl", "urllib", "urllib3", "zlib",
}  # fmt: skip
"""Modules of which nothing may run on the loop's thread."""


@contextmanager
def noting_calls() -> Iterator[set[tuple[str, str]]]:
    """Give module and name of every function, also those of C, that this thread calls meanwhile."""
    calls: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            calls.add((frame.f_globals.get("__name__", "?"), frame.f_code.co_name))
        elif event == "c_call":
            calls.add((getattr(argument, "__module__", None) or "builtins", argument.__name__))

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def test_put_and_get_do_no_byte_sized_work_on_the_loops_thread(
    service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's thread runs nothing of boto3, of sockets, hashes or base64; all of it runs, elsewhere."""
    worked: dict[str, set[int]] = {}

    def spy(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            worked.setdefault(f"{owner.__name__}.{name}", set()).add(threading.get_ident())
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    class Hashes:
        __name__ = "hashes"
        sha256, md5 = staticmethod(hashlib.sha256), staticmethod(hashlib.md5)

    hashes = Hashes()
    for module in (_bucket, _client):
        monkeypatch.setattr(module, "hashlib", hashes)
    spy(hashes, "sha256")
    spy(hashes, "md5")
    spy(botocore.auth, "sha256")
    spy(botocore.response.StreamingBody, "read")
    digest = digest_of(CONTENT)
    options = S3Options(endpoint_url=service.endpoint_url, request_checksum_calculation="when_required")

    async def scenario() -> tuple[bytes | None, set[tuple[str, str]]]:
        async with S3BlobStore("bucket", options=options) as blobs:
            with noting_calls() as calls:
                await blobs.put("t", digest, CONTENT)
                await blobs.put("t", digest, CONTENT)
                got = await blobs.get("t", digest)
        return got, calls

    got, calls = asyncio.run(scenario())

    assert CONTENT == got
    assert {"hashes.sha256", "hashes.md5", "botocore.auth.sha256", "StreamingBody.read"} == worked.keys()
    assert threading.get_ident() not in set().union(*worked.values())
    assert ("strata_blobs_s3._store", "put") in calls
    assert [] == sorted(call for call in calls if call[0].partition(".")[0] in BYTE_SIZED)


def test_boto3_is_imported_in_a_thread_when_the_store_is_opened() -> None:
    """Not with the package, nor by making a store, and not on the loop, which a third of a second would stop."""
    program = """
import asyncio, builtins, sys, threading
import strata_blobs_s3, strata_blobs_s3._plugin
from strata_core.errors import StoreUnavailableError

store = strata_blobs_s3.S3BlobStore.from_url("s3://bucket?endpoint_url=http://127.0.0.1:9&max_attempts=1")
before = {"boto3", "botocore"} & sys.modules.keys()
real, importers = builtins.__import__, set()

def noted(name, *rest):
    if name.partition(".")[0] in {"boto3", "botocore"}:
        importers.add(threading.current_thread() is threading.main_thread())
    return real(name, *rest)

builtins.__import__ = noted

async def main():
    try:
        await store.__aenter__()
    except StoreUnavailableError:
        pass

asyncio.run(main())
print(before, importers)
"""
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert "set() {False}" == out.strip()


def test_a_bounded_number_of_threads_works_at_once(service: SmallService) -> None:
    """As many as there are connections; what comes more waits its turn."""

    async def scenario() -> int:
        options = S3Options(endpoint_url=service.endpoint_url, max_connections=3)
        async with S3BlobStore("bucket", options=options) as blobs:
            await asyncio.gather(*(blobs.put(f"t{n}", digest_of(b"1"), b"1") for n in range(20)))
            return sum(thread.name.startswith("strata-blobs-s3") for thread in threading.enumerate())

    assert 3 == asyncio.run(scenario())
    assert 20 == len(service.objects)
