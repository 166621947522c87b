"""What is said, and what is done, when a service refuses, fails, or says something false."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import botocore.endpoint
import botocore.exceptions
import pytest
import urllib3.exceptions
from botocore.response import StreamingBody
from s3_support import CONTENT, DIGEST, SMALL, digest_of, failure, store_at
from small_service import Answer, Request, SmallService, refusal

from strata_blobs_s3 import S3BlobStore, S3Options
from strata_conformance.servers import FaultProxy, MotoServer
from strata_core.errors import CorruptCheckpointError, InvalidInputError, StoreUnavailableError
from strata_core.ports import StoredBlob


def failure_at_open(endpoint_url: str, **options: Any) -> StoreUnavailableError:
    """Return the error of opening a store."""

    async def scenario() -> StoreUnavailableError:
        with pytest.raises(StoreUnavailableError) as caught:
            async with store_at(endpoint_url, max_attempts=1, **options):
                pass
        return caught.value

    return asyncio.run(scenario())


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Attempts follow each other at once; what the pauses would have been."""
    pauses: list[float] = []

    class Time:
        sleep = pauses.append

        def __getattr__(self, name: str) -> Any:
            return getattr(time, name)

    monkeypatch.setattr(botocore.endpoint, "time", Time())
    return pauses


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (400, "ExpiredToken", "the session token has expired; renew the credentials"),
        (403, "InvalidAccessKeyId", "boto3 found credentials that the service does not accept"),
        (403, "SignatureDoesNotMatch", "boto3 found credentials that the service does not accept"),
        (403, "AccessDenied", "these credentials may not do that; blobs need s3:ListBucket on the bucket"),
        (404, "NoSuchBucket", "there is no such bucket; create it"),
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
        (503, "SlowDown", "it asks for fewer requests at a time"),
        (418, "Teapot", "short and stout"),
    ],
)
def test_what_a_service_refuses_at_open_is_said_with_what_to_do(
    service: SmallService, status: int, code: str, said: str
) -> None:
    service.before = lambda _: refusal(status, code, "short and stout")
    error = failure_at_open(service.endpoint_url)

    assert f"cannot list s3://bucket/strata: {code}: {said}" in str(error)
    assert "short and stout" in str(error)
    assert not error.maybe_written
    assert isinstance(error.__cause__, botocore.exceptions.ClientError)


def test_a_bucket_in_another_region_is_said_with_the_region(service: SmallService) -> None:
    service.before = lambda _: refusal(301, "PermanentRedirect", x_amz_bucket_region="eu-north-1")

    assert "the bucket is in another region; set region=eu-north-1" in str(failure_at_open(service.endpoint_url))


def test_without_credentials_it_says_where_boto3_looks(service: SmallService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = failure_at_open(service.endpoint_url)

    assert "boto3 found no credentials; set AWS_ACCESS_KEY_ID" in str(error)
    assert "NoCredentialsError" == type(error.__cause__).__name__


@pytest.mark.usefixtures("service")
def test_a_service_that_is_not_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    error = failure_at_open(f"http://127.0.0.1:{port}")

    assert "Could not connect to the endpoint" in str(error)
    assert not error.maybe_written


def test_a_token_that_expires_while_the_store_is_open_fails_each_call(service: SmallService) -> None:
    service.before = lambda _: refusal(400, "ExpiredToken")
    calls: list[Callable[[S3BlobStore], Awaitable[Any]]] = [
        lambda blobs: blobs.put("t", DIGEST, CONTENT),
        lambda blobs: blobs.get("t", DIGEST),
        lambda blobs: blobs.delete_thread("t"),
        lambda blobs: blobs.ping(),
    ]
    for call in calls:
        assert "ExpiredToken: the session token has expired" in str(failure(service, call))
    assert {} == service.objects


def test_no_error_shows_a_secret(service: SmallService) -> None:
    service.before = lambda _: refusal(403, "SignatureDoesNotMatch")

    assert "s3cr3t" not in repr(failure(service, lambda blobs: blobs.get("t", DIGEST)))


def test_throttling_is_waited_out(service: SmallService, no_pauses: list[float]) -> None:
    """Attempt by attempt, up to `max_attempts`, in growing pauses; core repeats commits, not blobs."""
    left = [2]

    def throttle(_: Request) -> Answer | None:
        left[0] -= 1
        return refusal(503, "SlowDown") if left[0] >= 0 else None

    async def scenario() -> bytes | None:
        async with store_at(service.endpoint_url) as blobs:
            service.before, left[0] = throttle, 2
            await blobs.put("t", digest_of(SMALL), SMALL)
            left[0] = 2
            return await blobs.get("t", digest_of(SMALL))

    assert SMALL == asyncio.run(scenario())
    assert 4 == len(no_pauses)
    service.before, left[0] = throttle, 100
    error = failure(service, lambda blobs: blobs.get("t", digest_of(SMALL)), attempts=3)
    assert "SlowDown: it asks for fewer requests at a time" in str(error)
    assert ["GetObject"] * 3 == service.operations()


def test_an_answer_that_is_lost_after_storing_leaves_the_outcome_open_and_the_put_repeatable(
    service: SmallService, no_pauses: list[float]
) -> None:
    def lose(request: Request, answer: Answer) -> Answer:
        return Answer(lost=True) if request.method == "PUT" else answer

    service.after = lose
    error = failure(service, lambda blobs: blobs.put("t", digest_of(SMALL), SMALL))

    assert error.maybe_written
    assert [SMALL] == list(service.objects.values())
    lost = iter([True, False])
    service.after = lambda request, answer: Answer(lost=True) if request.method == "PUT" and next(lost) else answer

    async def scenario() -> None:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.put("t", digest_of(SMALL), SMALL)

    asyncio.run(scenario())
    assert next(lost, None) is None
    assert [SMALL] == list(service.objects.values())


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_body_that_arrives_damaged_is_asked_for_once_more(service: SmallService, damage: str) -> None:
    times = [1]

    def harm(request: Request, answer: Answer) -> Answer:
        if request.operation != "GetObject" or times[0] == 0:
            return answer
        times[0] -= 1
        if damage == "cut":
            return Answer(200, answer.body, answer.headers, sent=1000)
        return Answer(200, answer.body[:-2] + b"y" + answer.body[-1:], answer.headers)

    async def scenario() -> bytes | None:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.put("t", DIGEST, CONTENT)
            got = await blobs.get("t", DIGEST)
            times[0] = 2
            with pytest.raises((CorruptCheckpointError, StoreUnavailableError)) as caught:
                await blobs.get("t", DIGEST)
            errors.append(caught.value)
        return got

    errors: list[Exception] = []
    service.after = harm

    assert CONTENT == asyncio.run(scenario())
    (error,) = errors
    if damage == "cut":
        assert isinstance(error, StoreUnavailableError)
    else:
        assert isinstance(error, CorruptCheckpointError)
        assert "t" == error.thread_id
        assert f"has a blob {DIGEST} in s3://bucket/strata, whose content does not match that hash" in str(error)


def test_keys_that_could_not_be_deleted_are_an_error(service: SmallService) -> None:
    """The answer to a delete of many keys is a success whatever became of each."""
    report = (
        b"<DeleteResult><Error><Key>a</Key><Code>NoSuchKey</Code></Error>"
        b"<Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>"
    )
    service.objects = {f"strata/74/{n:064x}": SMALL for n in range(3)}
    service.after = lambda request, answer: Answer(body=report) if request.operation == "DeleteObjects" else answer
    error = failure(service, lambda blobs: blobs.delete_thread("t"))

    assert "cannot delete 1 of 3 blobs in s3://bucket/strata: AccessDenied: these credentials may not do that" in str(
        error
    )
    assert error.maybe_written
    service.after = lambda request, answer: (
        Answer(body=report.replace(b"AccessDenied", b"NoSuchKey")) if request.operation == "DeleteObjects" else answer
    )

    async def scenario() -> None:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.delete_thread("t")

    asyncio.run(scenario())


def test_a_service_that_hangs_is_given_up(service: SmallService) -> None:
    async def scenario() -> StoreUnavailableError:
        options = {"read_timeout": timedelta(milliseconds=200), "max_attempts": 1}
        async with store_at(service.endpoint_url, **options) as blobs:
            service.gate = threading.Event()
            with pytest.raises(StoreUnavailableError) as caught:
                await blobs.put("t", digest_of(SMALL), SMALL)
            service.gate.set()
        return caught.value

    error = asyncio.run(scenario())

    assert "ReadTimeoutError" in str(error)
    assert error.maybe_written


def test_a_connection_that_breaks_is_made_anew(moto_server: MotoServer, moto: Any, no_pauses: list[float]) -> None:
    async def scenario(proxy: FaultProxy) -> bytes | None:
        async with S3BlobStore(moto.bucket, options=S3Options(endpoint_url=proxy.url(moto.endpoint_url))) as blobs:
            await blobs.put("t", DIGEST, CONTENT)
            proxy.reset("connect")
            return await blobs.get("t", DIGEST)

    with FaultProxy.before(moto_server) as proxy:
        assert CONTENT == asyncio.run(scenario(proxy))


@pytest.mark.parametrize(
    ("option", "value"),
    [("endpoint_url", "http://minio_server:9000"), ("endpoint_url", "http://a b"), ("region", "eu/west")],
)
def test_what_boto3_takes_for_no_address_is_told_by_its_option(option: str, value: Any) -> None:
    """Such as the name of a service in a compose file, which may have an underscore."""

    async def scenario() -> InvalidInputError:
        with pytest.raises(InvalidInputError) as caught:
            async with S3BlobStore("bucket", options=S3Options(**{option: value})):
                pass
        return caught.value

    error = asyncio.run(scenario())

    assert option == error.argument
    assert repr(value) in str(error)


def test_a_listing_whose_rest_cannot_be_asked_for_is_not_taken_for_all(service: SmallService) -> None:
    """A purge would say that it has deleted what it has not even seen."""
    service.objects = {f"strata/74/{n:064x}": SMALL for n in range(3)}
    cut = b"<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>strata/74/%064x</Key><Size>1</Size>"
    cut = cut % 0 + b"<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>"

    def tell_a_part(request: Request, answer: Answer) -> Answer:
        return Answer(body=cut) if request.query.get("max-keys") == ["1000"] else answer

    service.after = tell_a_part
    for use in (lambda blobs: blobs.delete_thread("t"), lambda blobs: _all(blobs.list_blobs())):
        assert "does not tell the rest" in str(failure(service, use))


async def _all(listing: AsyncIterator[StoredBlob]) -> list[StoredBlob]:
    return [blob async for blob in listing]


@pytest.mark.parametrize("headers", [{"Content-Length": "", "Connection": "close"}, {"Content-Length": "many"}])
def test_a_service_that_does_not_tell_a_size_gets_the_blob_again(
    service: SmallService, headers: Mapping[str, str]
) -> None:
    content = bytes(40_000)

    async def scenario() -> None:
        async with store_at(service.endpoint_url) as blobs:
            await blobs.put("t", digest_of(content), content)
            service.after = lambda request, answer: (
                Answer(headers=headers) if request.operation == "HeadObject" else answer
            )
            await blobs.put("t", digest_of(content), content)

    asyncio.run(scenario())

    assert 2 == service.operations().count("PutObject")


def test_an_answer_that_is_none_of_s3_s_is_an_error_of_the_store(service: SmallService) -> None:
    """Such as that of a proxy which says what it likes; boto3 raises whatever comes of it."""
    body = b"<ListBucketResult><KeyCount>many</KeyCount></ListBucketResult>"
    service.after = lambda request, answer: Answer(body=body) if request.query.get("max-keys") == ["1000"] else answer

    assert "cannot list the blobs in s3://bucket/strata: ValueError" in str(
        failure(service, lambda blobs: _all(blobs.list_blobs()))
    )


def test_a_body_that_breaks_in_a_way_that_boto3_lets_through_is_an_error_of_the_store(
    service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a record of TLS that was damaged on its way: urllib3's own error, and no error of a connection."""

    def broken(self: StreamingBody, amt: int | None = None) -> bytes:
        raise urllib3.exceptions.SSLError("bad record mac")

    monkeypatch.setattr(StreamingBody, "read", broken)
    service.objects = {f"strata/74/{DIGEST.removeprefix('sha256:')}": CONTENT}
    error = failure(service, lambda blobs: blobs.get("t", DIGEST))

    assert "cannot get a blob from s3://bucket/strata: ResponseStreamingError" in str(error)
    assert "bad record mac" in str(error)
    assert 2 == service.operations().count("GetObject")
