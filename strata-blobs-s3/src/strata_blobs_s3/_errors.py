"""What the service or boto3 said as the store's own errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from strata_core.errors import StoreUnavailableError, StrataError

__all__ = ["code_of", "explained", "mapped"]

_RENEW: Final = "renew the credentials that boto3 finds, or let it find a role that renews them itself"
_KEYS: Final = (
    "boto3 found credentials that the service does not accept; check the environment, the profile or the role"
)
_SLOWER: Final = "it asks for fewer requests at a time; lower max_connections, or raise max_attempts"
_CHECKSUMS: Final = "it may not know the newer checksum headers; set request_checksum_calculation=when_required"
_HINTS: Final[Mapping[str, str]] = {
    "ExpiredToken": f"the session token has expired; {_RENEW}",
    "ExpiredTokenException": f"the session token has expired; {_RENEW}",
    "TokenRefreshRequired": f"the session token has expired; {_RENEW}",
    "InvalidToken": f"the session token is not valid; {_RENEW}",
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "UnrecognizedClientException": _KEYS,
    "AccessDenied": "these credentials may not do that; blobs need s3:ListBucket on the bucket, and s3:GetObject, "
    "s3:PutObject and s3:DeleteObject on what is in it",
    "403": "these credentials may not do that",
    "NoSuchBucket": "there is no such bucket; create it, or correct the name, the region or endpoint_url",
    "SlowDown": _SLOWER,
    "Throttling": _SLOWER,
    "ThrottlingException": _SLOWER,
    "RequestLimitExceeded": _SLOWER,
    "TooManyRequests": _SLOWER,
    "ServiceUnavailable": _SLOWER,
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it",
    "MissingContentMD5": _CHECKSUMS,
    "InvalidRequest": _CHECKSUMS,
    "NotImplemented": _CHECKSUMS,
    "InvalidObjectState": "the object was moved to an archive; exclude blobs from that lifecycle rule",
}
_ELSEWHERE: Final = frozenset(
    {
        "PermanentRedirect",
        "TemporaryRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "301",
    }
)
"""Codes for a bucket that is in another region."""
_NOTHING_SENT: Final = frozenset(
    {
        "ConnectTimeoutError",
        "CredentialRetrievalError",
        "EndpointConnectionError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "ProxyConnectionError",
        "SSLError",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
    }
)
"""boto3's errors that come before a request has left."""
_LONGEST: Final = 300


@contextmanager
def mapped(verb: str, where: str, *, maybe_written: bool | None = None) -> Iterator[None]:
    """Tell what boto3 raises inside as the store's own error, ``from`` its cause.

    Args:
        verb: What was being done, such as ``put a blob into``.
        where: The bucket and prefix.
        maybe_written: Whether it may have been done all the same; None: judge by the error.

    Raises:
        StoreUnavailableError: In place of any error of boto3, or of what it uses.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except StrataError:
        raise
    # A ValueError or a LookupError is how boto3 takes an answer that is none of S3's.
    except (BotoCoreError, ClientError, OSError, ValueError, LookupError) as error:
        unknown = _is_unknown(error) if maybe_written is None else maybe_written
        raise StoreUnavailableError(f"cannot {verb} {where}: {_said(error)}", maybe_written=unknown) from error


def code_of(error: Any) -> str:
    """Return the service's code for a refusal."""
    return str(error.response.get("Error", {}).get("Code", ""))


def explained(code: str, message: str) -> str:
    """Return a code with what to do about it, and with what the service said."""
    said = message[:_LONGEST].rstrip(". \n")
    hint = _HINTS.get(code, "")
    return ": ".join(part for part in (code, hint or said) if part) + (f" ({said})" if hint and said else "")


def _said(error: Any) -> str:
    if not _is_refusal(error):
        name = type(error).__name__
        if name in {"NoCredentialsError", "PartialCredentialsError"}:
            return (
                "boto3 found no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile, or run "
                "with a role"
            )
        return f"{name}: {str(error)[:_LONGEST]}"
    code, details = code_of(error), error.response.get("Error", {})
    if code in _ELSEWHERE:
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        region = details.get("Region") or headers.get("x-amz-bucket-region")
        where = f"set region={region}" if region else "set region"
        return f"{code}: the bucket is in another region; {where}"
    return explained(code, str(details.get("Message", "")))


def _is_refusal(error: Any) -> bool:
    """Whether the service answered; boto3's errors of connections have a response, too, which is None."""
    return isinstance(getattr(error, "response", None), dict)


def _is_unknown(error: Any) -> bool:
    if _is_refusal(error):
        return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)) >= 500
    return type(error).__name__ not in _NOTHING_SENT
