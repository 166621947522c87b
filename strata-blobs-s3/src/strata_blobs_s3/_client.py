"""Making boto3's client."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from strata_blobs_s3._options import S3Options
from strata_core.errors import InvalidInputError

__all__ = ["content_md5", "make_client", "sends_checksums"]


def make_client(options: S3Options) -> Any:
    """Return a client, made for `options`; whoever gets it closes it.  Blocks: it imports boto3 and reads files.

    Raises:
        InvalidInputError: There is no such profile, or the endpoint's host has no name that boto3 takes.
    """
    from boto3.session import Session
    from botocore.config import Config
    from botocore.exceptions import InvalidRegionError, ProfileNotFound

    style = options.addressing_style or ("auto" if options.endpoint_url is None else "path")
    config = Config(
        connect_timeout=options.connect_timeout.total_seconds(),
        read_timeout=options.read_timeout.total_seconds(),
        retries={"mode": "standard", "total_max_attempts": options.max_attempts},
        max_pool_connections=options.max_connections,
        s3={"addressing_style": style},
        request_checksum_calculation=options.request_checksum_calculation,
        response_checksum_validation="when_required",  # the digest is the name, and is checked
        user_agent_extra="strata-blobs-s3",
    )
    try:
        session = Session(profile_name=options.profile, region_name=options.region)
    except ProfileNotFound as error:
        raise InvalidInputError("profile", f"boto3's configuration has no profile {options.profile!r}") from error
    try:
        client = session.client("s3", endpoint_url=options.endpoint_url, config=config)
    except InvalidRegionError as error:
        raise InvalidInputError("region", f"{options.region!r} is not the name of one") from error
    except ValueError as error:
        raise InvalidInputError(
            "endpoint_url",
            f"boto3 does not take {options.endpoint_url!r}: a host has letters, digits, dots and dashes, no underscore",
        ) from error
    if not sends_checksums(client):
        client.meta.events.register_last("before-sign.s3.DeleteObjects", _sign_with_md5)
    return client


def sends_checksums(client: Any) -> bool:
    """Whether the service takes the newer checksum headers."""
    return bool(client.meta.config.request_checksum_calculation != "when_required")


def content_md5(content: bytes) -> str:
    """Return the header that guards a body where the newer ones are refused."""
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def _sign_with_md5(request: Any, **_: object) -> None:
    """Replace the checksum of a request that must have one, which boto3 gives it whatever it was told."""
    for name in [
        name for name in request.headers if name.lower().startswith(("x-amz-checksum-", "x-amz-sdk-checksum"))
    ]:
        del request.headers[name]
    del request.headers["Content-MD5"]
    request.headers["Content-MD5"] = content_md5(request.body)
