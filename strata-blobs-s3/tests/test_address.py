"""What URLs and options may say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from strata_blobs_s3 import S3BlobStore, S3Options
from strata_core.errors import InvalidInputError


def test_a_url_names_bucket_prefix_and_every_option() -> None:
    store = S3BlobStore.from_url(
        "s3://my-bucket/team%20a/strata/?endpoint_url=https%3A%2F%2Fs3.example.com&region=eu-north-1&profile=blobs"
        "&addressing_style=virtual&request_checksum_calculation=when_required&connect_timeout=1.5&read_timeout=30"
        "&max_attempts=7&max_connections=3&server_side_encryption=aws:kms&kms_key_id=alias/strata"
    )

    assert "s3://my-bucket/team a/strata" == store.url
    assert "<S3BlobStore s3://my-bucket/team a/strata>" == repr(store)
    assert (
        S3Options(
            endpoint_url="https://s3.example.com",
            region="eu-north-1",
            profile="blobs",
            addressing_style="virtual",
            request_checksum_calculation="when_required",
            connect_timeout=timedelta(seconds=1.5),
            read_timeout=timedelta(seconds=30),
            max_attempts=7,
            max_connections=3,
            server_side_encryption="aws:kms",
            kms_key_id="alias/strata",
        )
        == store.options
    )


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "S3://bucket", "s3://bucket?"])
def test_a_bucket_alone_is_enough(url: str) -> None:
    store = S3BlobStore.from_url(url)

    assert ("s3://bucket", S3Options()) == (store.url, store.options)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3:bucket/prefix", "must be s3://bucket/prefix"),
        ("s3://", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://ab", "names no bucket"),
        ("s3://bucket/a#b", "no '#'"),
        ("s3://localhost:9000/bucket", "write s3://bucket?endpoint_url="),
        ("s3://bucket/a//b", "a part that is empty or made of dots"),
        ("s3://bucket/../b", "a part that is empty or made of dots"),
        ("s3://bucket/%ff", "an escape that is not UTF-8"),
        ("s3://bucket/%00", "a control character"),
        ("s3://bucket/" + "x" * 701, "has 701 UTF-8 bytes"),
        ("s3://bucket?region", "a query that is not name=value"),
        ("s3://bucket?region=a&region=b", "says region twice"),
        ("s3://bucket?endpoint=http://x", "no option 'endpoint' (did you mean 'endpoint_url'?)"),
        ("s3://bucket?max_attempts=many", "max_attempts must be a number, not 'many'"),
        ("s3://bucket?max_attempts=0", "max_attempts must be an int from 1 to 20"),
        ("s3://bucket?read_timeout=nan", "read_timeout must be a number"),
        ("s3://bucket?read_timeout=-1", "read_timeout must be a timedelta of more than 0"),
        ("s3://bucket?endpoint_url=localhost:9000", "endpoint_url must be the http: or https: URL of a service"),
        ("s3://bucket?endpoint_url=http://[", "endpoint_url must be the http: or https: URL of a service"),
        ("s3://bucket?addressing_style=dns", "addressing_style must be None or one of 'auto', 'path', 'virtual'"),
        ("s3://bucket?region=", "region must be None or a printable str"),
        ("s3://bucket?kms_key_id=x", "kms_key_id needs server_side_encryption"),
    ],
)
def test_a_url_that_says_something_else_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        S3BlobStore.from_url(url)

    assert "url" == caught.value.argument
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://someone:s3cr3t@bucket/prefix",
        "s3://bucket?aws_secret_access_key=s3cr3t",
        "s3://bucket?aws_access_key_id=x&aws_session_token=s3cr3t",
        "s3://bucket?endpoint_url=http%3A%2F%2Fsomeone:s3cr3t@host",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInputError, match="credentials come from boto3's own chain") as caught:
        S3BlobStore.from_url(url)

    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endpoint_url", 1),
        ("region", "a\nb"),
        ("connect_timeout", 5),
        ("read_timeout", timedelta(0)),
        ("max_connections", True),
        ("max_attempts", 21),
        ("server_side_encryption", "rot13"),
        ("request_checksum_calculation", "always"),
    ],
)
def test_an_option_that_breaks_a_rule_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        S3Options(**{name: value})

    assert name == caught.value.argument


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"bucket": "a/b"}, "bucket"),
        ({"bucket": None}, "bucket"),
        ({"bucket": "bucket", "prefix": None}, "prefix"),
        ({"bucket": "bucket", "prefix": "\ud800"}, "prefix"),
        ({"bucket": "bucket", "prefix": "\uffff"}, "prefix"),
        ({"bucket": "bucket", "options": {}}, "options"),
    ],
)
def test_arguments_that_break_a_rule_are_refused(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        S3BlobStore(**arguments)

    assert argument == caught.value.argument


def test_a_url_in_the_place_of_a_bucket_is_refused_without_its_secret() -> None:
    with pytest.raises(InvalidInputError) as caught:
        S3BlobStore("s3://someone:s3cr3t@bucket")

    assert "s3cr3t" not in str(caught.value)


def test_the_options_of_a_url_are_those_of_the_class() -> None:
    from attrs import fields

    from strata_blobs_s3 import _address

    assert [field.name for field in fields(S3Options)] == list(_address._READERS)
