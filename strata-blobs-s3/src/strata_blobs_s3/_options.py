"""What a user can choose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs

from strata_core.errors import InvalidInputError
from strata_core.urls import redact

__all__ = ["S3Options"]

AddressingStyle: TypeAlias = Literal["auto", "path", "virtual"]
ChecksumCalculation: TypeAlias = Literal["when_supported", "when_required"]
Encryption: TypeAlias = Literal["AES256", "aws:kms", "aws:kms:dsse"]

_MOST_ATTEMPTS: Final = 20
_MOST_CONNECTIONS: Final = 1000
_LONGEST_WAIT: Final = timedelta(hours=1)


def _text(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value.strip() or not value.isprintable()):
        raise InvalidInputError(attribute.name, "must be None or a printable str that is not empty")


def _endpoint(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    _text(instance, attribute, value)
    if value is None:
        return
    shown = redact(value)
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = None, None
    if parts is None or parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise InvalidInputError(
            attribute.name,
            f"must be the http: or https: URL of a service, such as http://localhost:9000, not {shown!r}",
        )
    if "@" in parts.netloc:
        raise InvalidInputError(
            attribute.name, f"{shown!r} has a user: credentials come from boto3's own chain, never from a URL"
        )


def _one_of(*allowed: str) -> Callable[[object, attrs.Attribute[Any], object], None]:
    def check(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if value is not None and value not in allowed:
            raise InvalidInputError(
                attribute.name, f"must be None or one of {', '.join(map(repr, allowed))}, not {value!r}"
            )

    return check


def _count(most: int) -> Callable[[object, attrs.Attribute[Any], object], None]:
    def check(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if type(value) is not int or not 1 <= value <= most:
            raise InvalidInputError(attribute.name, f"must be an int from 1 to {most}, not {value!r}")

    return check


def _wait(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, timedelta) or not timedelta(0) < value <= _LONGEST_WAIT:
        raise InvalidInputError(
            attribute.name, f"must be a timedelta of more than 0 and at most one hour, not {value!r}"
        )


@attrs.frozen
class S3Options:
    """The options of `S3BlobStore`.  A URL gives each under the same name, times in seconds.

    There is none for keys and tokens: credentials come from boto3's own chain (environment, files, a role).

    Attributes:
        endpoint_url: The service, where it is not AWS, such as ``http://localhost:9000``.
        region: The bucket's region; None is boto3's own choice.
        profile: The profile of boto3's configuration to use; None is boto3's own choice.
        addressing_style: Whether the bucket stands in the path or in the host name; None is ``path`` with an
            `endpoint_url` and ``auto``, which is boto3's choice, without.
        request_checksum_calculation: ``when_required`` for services that refuse the newer checksum headers
            (``x-amz-checksum-…``): integrity is then guarded by ``Content-MD5``, in deletes too.  None is boto3's own
            choice, which is ``when_supported`` unless its configuration says otherwise.
        connect_timeout: How long it may take to connect.
        read_timeout: How long the service may be silent.
        max_attempts: How often a request is tried in all when the service is throttling, failing or silent, with
            growing pauses.  Everything sent here can be repeated, and core repeats only commits.
        max_connections: How many requests go on at once, each in a thread of its own.
        server_side_encryption: What to ask of the service for each blob; None leaves it to the bucket.
        kms_key_id: The key for the encryptions ``aws:kms`` and ``aws:kms:dsse``; None is the account's.
    """

    endpoint_url: str | None = attrs.field(default=None, validator=_endpoint)
    region: str | None = attrs.field(default=None, validator=_text)
    profile: str | None = attrs.field(default=None, validator=_text)
    addressing_style: AddressingStyle | None = attrs.field(default=None, validator=_one_of("auto", "path", "virtual"))
    request_checksum_calculation: ChecksumCalculation | None = attrs.field(
        default=None, validator=_one_of("when_supported", "when_required")
    )
    connect_timeout: timedelta = attrs.field(default=timedelta(seconds=5), validator=_wait)
    read_timeout: timedelta = attrs.field(default=timedelta(seconds=20), validator=_wait)
    max_attempts: int = attrs.field(default=3, validator=_count(_MOST_ATTEMPTS))
    max_connections: int = attrs.field(default=10, validator=_count(_MOST_CONNECTIONS))
    server_side_encryption: Encryption | None = attrs.field(
        default=None, validator=_one_of("AES256", "aws:kms", "aws:kms:dsse")
    )
    kms_key_id: str | None = attrs.field(default=None, validator=_text)

    def __attrs_post_init__(self) -> None:
        if self.kms_key_id is not None and not (self.server_side_encryption or "").startswith("aws:kms"):
            raise InvalidInputError("kms_key_id", "needs server_side_encryption to be 'aws:kms' or 'aws:kms:dsse'")
