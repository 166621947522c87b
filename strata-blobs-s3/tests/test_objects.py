"""What lies in a bucket, and how it goes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from s3_support import Place, digest_of
from small_service import SmallService

from strata_blobs_s3 import S3BlobStore, S3Options, _bucket
from strata_core.blobs import thread_folder
from strata_core.errors import InvalidInputError, StoreUnavailableError

A = b'"first"'
LONG = "x" * 200


def test_a_blob_is_an_object_under_its_threads_folder(place: Place) -> None:
    """As in a folder of files: the ID in hex, or hashed where that gets too long."""

    async def scenario() -> None:
        async with place.store("team a/strata") as blobs:
            for thread in ("order/1", LONG):
                await blobs.put(thread, digest_of(A), A)

    asyncio.run(scenario())
    name = digest_of(A).removeprefix("sha256:")

    assert sorted(f"team a/strata/{thread_folder(thread)}/{name}" for thread in ("order/1", LONG)) == place.keys()
    assert "6f726465722f31" == thread_folder("order/1")
    assert thread_folder(LONG).startswith("sha256-")


def test_stores_with_different_prefixes_share_a_bucket_and_see_nothing_of_each_other(place: Place) -> None:
    async def scenario() -> list[object]:
        async with place.store("one") as one, place.store("on") as on, place.store() as root:
            await one.put("t", digest_of(A), A)
            got = [await blobs.get("t", digest_of(A)) for blobs in (one, on, root)]
            for blobs in (on, root):
                await blobs.delete_thread("t")
            return [*got, await one.get("t", digest_of(A)), [blob async for blob in root.list_blobs()]]

    assert [A, None, None, A, []] == asyncio.run(scenario())


def test_a_thread_of_many_pages_is_deleted_and_listed_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of another thread, nor anything else below the prefix."""
    monkeypatch.setattr(_bucket, "_PAGE", 3)
    contents = [f'"{n}"'.encode() for n in range(8)]
    place.client.put_object(Bucket=place.bucket, Key="strata/readme.txt", Body=b"hands off")
    place.client.put_object(Bucket=place.bucket, Key="strata/74/readme.txt", Body=b"goes with its thread")

    async def scenario() -> tuple[set[tuple[str, str, int]], bool]:
        async with place.store("strata") as blobs:
            await asyncio.gather(*(blobs.put(t, digest_of(it), it) for t in ("t", "t2") for it in contents))
            listed = [blob async for blob in blobs.list_blobs()]
            await blobs.delete_thread("t")
            await blobs.delete_thread("t")
        fresh = all(abs(datetime.now(UTC) - blob.stored_at) < timedelta(hours=1) for blob in listed)
        return {(blob.folder, blob.digest, blob.size) for blob in listed}, fresh

    listed, fresh = asyncio.run(scenario())

    assert fresh
    assert {(folder, digest_of(it), 3) for folder in ("74", "7432") for it in contents} == listed
    assert sorted(["strata/readme.txt", *(f"strata/7432/{digest_of(it)[7:]}" for it in contents)]) == place.keys()


def test_a_delete_asks_for_a_thousand_keys_at_a_time(service: SmallService) -> None:
    service.objects = {f"74/{n:064x}": A for n in range(2500)}
    service.objects["7432/" + "0" * 64] = A

    async def scenario() -> None:
        async with S3BlobStore("bucket", options=S3Options(endpoint_url=service.endpoint_url)) as blobs:
            await blobs.delete_thread("t")

    asyncio.run(scenario())

    assert ["7432/" + "0" * 64] == list(service.objects)
    assert ["ListObjectsV2", "DeleteObjects"] * 3 == service.operations()[1:]


def test_an_encryption_is_asked_for_with_every_blob(service: SmallService) -> None:
    async def scenario() -> None:
        options = S3Options(endpoint_url=service.endpoint_url, server_side_encryption="aws:kms", kms_key_id="key-1")
        async with S3BlobStore("bucket", options=options) as blobs:
            await blobs.put("t", digest_of(A), A)

    asyncio.run(scenario())
    (put,) = (request for request in service.requests if request.method == "PUT")

    assert "aws:kms" == put.headers["x-amz-server-side-encryption"]
    assert "key-1" == put.headers["x-amz-server-side-encryption-aws-kms-key-id"]


def test_false_credentials_are_refused_by_a_service_that_checks_them(
    swift: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")

    async def scenario() -> None:
        async with swift.store():
            pass

    with pytest.raises(
        StoreUnavailableError, match="boto3 found credentials that the service does not accept"
    ) as caught:
        asyncio.run(scenario())
    assert "wr0ng" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_said_at_open(place: Place) -> None:
    async def scenario() -> None:
        async with S3BlobStore("no-such-bucket", options=S3Options(endpoint_url=place.endpoint_url)):
            pass

    with pytest.raises(
        StoreUnavailableError, match="s3://no-such-bucket: NoSuchBucket: there is no such bucket; create it"
    ):
        asyncio.run(scenario())


def test_a_profile_that_is_not_there_is_said_at_open(service: SmallService) -> None:
    async def scenario() -> None:
        async with S3BlobStore("bucket", options=S3Options(endpoint_url=service.endpoint_url, profile="nobody")):
            pass

    with pytest.raises(InvalidInputError, match="has no profile 'nobody'"):
        asyncio.run(scenario())
