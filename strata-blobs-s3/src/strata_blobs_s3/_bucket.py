"""What is asked of the service, in the thread that asks it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from strata_blobs_s3._client import content_md5, make_client, sends_checksums
from strata_blobs_s3._errors import code_of, explained, mapped
from strata_blobs_s3._options import S3Options
from strata_core.blobs import digest_of_file, is_thread_folder
from strata_core.errors import StoreUnavailableError
from strata_core.ports import StoredBlob

__all__ = ["Bucket", "FalseContentError"]

_PAGE: Final = 1000
"""Keys that one listing returns and one delete takes, at most."""
_ASK_FIRST: Final = 32 << 10
"""Bytes from which it is worth a request to find out that a blob is there already."""


class FalseContentError(Exception):
    """A blob is there, and its content is not that of its name."""


class Bucket:
    """A bucket, or a part of it, and the client for it.  Every method blocks.

    Args:
        name: The bucket.
        root: What all keys begin with: empty, or with a slash at its end.
        where: Both, for messages.
        options: How to reach it.
    """

    def __init__(self, name: str, root: str, where: str, options: S3Options) -> None:
        self._name = name
        self._root = root
        self._where = where
        self._client: Any = None
        with mapped("use", where, maybe_written=False):
            self._client = make_client(options)
        self._sends_checksums = sends_checksums(self._client)
        self._extra = {
            name: value
            for name, value in (
                ("ServerSideEncryption", options.server_side_encryption),
                ("SSEKMSKeyId", options.kms_key_id),
            )
            if value is not None
        }

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def check(self) -> None:
        """Make sure that the bucket is there and can be listed: without that right, what is missing looks forbidden."""
        with mapped("list", self._where, maybe_written=False):
            self._client.list_objects_v2(Bucket=self._name, Prefix=self._root, MaxKeys=1)

    def put(self, key: str, name: str, content: bytes) -> None:
        """Store a blob, unless it is there already."""
        with mapped("put a blob into", self._where):
            if len(content) >= _ASK_FIRST and self._holds(key, content):
                return
            guard = (
                {"ChecksumSHA256": base64.b64encode(bytes.fromhex(name)).decode()}  # the digest is the name
                if self._sends_checksums
                else {"ContentMD5": content_md5(content)}
            )
            self._client.put_object(Bucket=self._name, Key=self._root + key, Body=content, **guard, **self._extra)

    def get(self, key: str, name: str) -> bytes | None:
        """Return a blob; None for none.

        What arrives cut or false is asked for once more: botocore repeats requests, but not the reading of a body.

        Raises:
            FalseContentError: It was false both times.
        """
        from botocore.exceptions import BotoCoreError, ClientError, ResponseStreamingError

        for is_last in (False, True):
            with mapped("get a blob from", self._where, maybe_written=False):
                try:
                    body = self._client.get_object(Bucket=self._name, Key=self._root + key)["Body"]
                except ClientError as error:
                    if code_of(error) in {"NoSuchKey", "404"}:
                        return None
                    raise
                try:
                    with body:
                        content: bytes = body.read()
                except Exception as error:
                    if not is_last:
                        continue
                    if isinstance(error, BotoCoreError):
                        raise
                    # What urllib3 says of a broken encryption, botocore lets through as it is.
                    raise ResponseStreamingError(error=error) from error
            if hashlib.sha256(content).hexdigest() == name:
                return content
        raise FalseContentError

    def delete(self, folder: str) -> None:
        """Delete everything in a folder, a page of keys at a time."""
        token = None
        while True:
            with mapped("delete the blobs in", self._where, maybe_written=True):
                page = self._listed(f"{self._root}{folder}/", token)
                keys = [{"Key": found["Key"]} for found in page.get("Contents", ())]
                wrong: Sequence[Any] = ()
                if keys:
                    answer = self._client.delete_objects(Bucket=self._name, Delete={"Objects": keys, "Quiet": True})
                    wrong = [error for error in answer.get("Errors", ()) if error.get("Code") != "NoSuchKey"]
            if wrong:
                first = explained(str(wrong[0].get("Code", "")), str(wrong[0].get("Message", "")))
                raise StoreUnavailableError(
                    f"cannot delete {len(wrong)} of {len(keys)} blobs in {self._where}: {first}", maybe_written=True
                )
            token = self._following(page)
            if token is None:
                return

    def page(self, token: str | None) -> tuple[list[StoredBlob], str | None]:
        """Return some blobs, and how to ask for those that follow; None when none do."""
        with mapped("list the blobs in", self._where, maybe_written=False):
            page = self._listed(self._root, token)
        blobs = []
        for found in page.get("Contents", ()):
            folder, _, name = found["Key"].removeprefix(self._root).partition("/")
            digest = digest_of_file(name)
            if digest is not None and is_thread_folder(folder):
                blobs.append(StoredBlob(folder, digest, found["Size"], found["LastModified"]))
        return blobs, self._following(page)

    def _listed(self, prefix: str, token: str | None) -> Any:
        further = {} if token is None else {"ContinuationToken": token}
        return self._client.list_objects_v2(Bucket=self._name, Prefix=prefix, MaxKeys=_PAGE, **further)

    def _following(self, page: Any) -> str | None:
        """Return how to ask for the keys behind a page; None at the end.

        Raises:
            StoreUnavailableError: There are more, and the service does not say how: a part must not be taken for all.
        """
        if not page.get("IsTruncated"):
            return None
        token: str | None = page.get("NextContinuationToken")
        if token is None:
            raise StoreUnavailableError(f"cannot list all blobs in {self._where}: the service does not tell the rest")
        return token

    def _holds(self, key: str, content: bytes) -> bool:
        """Whether this very blob is there, as far as the service can tell without sending it.

        A refusal is left to the put, whose answer, unlike this one, has a body that says why.
        """
        from botocore.exceptions import ClientError

        try:
            found = self._client.head_object(Bucket=self._name, Key=self._root + key)
        except (ClientError, ValueError):  # or an answer that boto3 cannot read
            return False
        if found.get("ContentLength") != len(content):
            return False
        if str(found.get("ServerSideEncryption", "")).startswith("aws:kms"):
            return True  # then the ETag is no digest
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return bool(found.get("ETag", "").strip('"') == md5)
