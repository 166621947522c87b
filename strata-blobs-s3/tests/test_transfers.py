"""How a blob is guarded on its way, and when it is not sent at all."""

from __future__ import annotations

import asyncio
import base64

import pytest
from s3_support import CONTENT, DIGEST, SMALL, digest_of, failure, store_at
from small_service import SmallService, only_old_headers


def test_a_service_that_refuses_newer_checksums_gets_the_old_ones_in_deletes_too(service: SmallService) -> None:
    service.before = only_old_headers

    async def scenario() -> bytes | None:
        async with store_at(service.endpoint_url, request_checksum_calculation="when_required") as blobs:
            await blobs.put("t", DIGEST, CONTENT)
            await blobs.put("t", DIGEST, CONTENT)
            got = await blobs.get("t", DIGEST)
            await blobs.delete_thread("t")
        return got

    assert CONTENT == asyncio.run(scenario())
    assert {} == service.objects
    assert "set request_checksum_calculation=when_required" in str(
        failure(service, lambda blobs: blobs.put("t", DIGEST, CONTENT))
    )


def test_boto3s_own_configuration_of_checksums_counts_too(
    service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.before = only_old_headers
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")

    async def scenario() -> None:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.put("t", DIGEST, CONTENT)
            await blobs.delete_thread("t")

    asyncio.run(scenario())


def test_by_default_the_service_checks_the_digest_itself(service: SmallService) -> None:
    async def scenario() -> None:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.put("t", digest_of(SMALL), SMALL)

    asyncio.run(scenario())
    (put,) = (request for request in service.requests if request.method == "PUT")

    assert bytes.fromhex(digest_of(SMALL)[7:]) == base64.b64decode(put.headers["x-amz-checksum-sha256"])


def test_a_large_blob_that_is_there_is_not_sent_again_and_a_false_one_is(service: SmallService) -> None:
    async def scenario() -> None:
        async with store_at(service.endpoint_url) as blobs:
            for content in (CONTENT, CONTENT, SMALL, SMALL):
                await blobs.put("t", digest_of(content), content)
            (key,) = (key for key, content in service.objects.items() if content == CONTENT)
            for false in (CONTENT[:-2] + b'y"', CONTENT[:-1]):
                service.objects[key] = false
                await blobs.put("t", DIGEST, CONTENT)
                assert CONTENT == service.objects[key]

    asyncio.run(scenario())

    assert ["HeadObject", "PutObject", "HeadObject", "PutObject", "PutObject"] == service.operations()[1:6]
    assert ["HeadObject", "PutObject"] * 2 == service.operations()[6:]
