"""A service of S3 that does as it is told: just enough of the protocol, and every way to go wrong."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import attrs

__all__ = ["Answer", "Request", "SmallService", "refusal"]


@attrs.frozen
class Request:
    """What came in, header names in lower case."""

    method: str
    key: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)

    @property
    def operation(self) -> str:
        if "delete" in self.query:
            return "DeleteObjects"
        if self.method == "GET" and not self.key:
            return "ListObjectsV2"
        return {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject"}[self.method]


@attrs.frozen
class Answer:
    """What goes out.

    Attributes:
        sent: How many bytes of the body really go; None: all.
        lost: Nothing goes, and the connection is closed.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    sent: int | None = None
    lost: bool = False


def refusal(status: int, code: str, message: str = "no", **headers: str) -> Answer:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return Answer(status, text.encode(), {name.replace("_", "-"): value for name, value in headers.items()})


class SmallService:
    """One bucket, in a thread of its own.

    Attributes:
        objects: Key to content.
        requests: What came in.
        before: Asked first: an answer in place of the work, or None.
        after: Asked with the answer of the work: what goes out instead.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.before: Callable[[Request], Answer | None] = lambda _: None
        self.after: Callable[[Request, Answer], Answer] = lambda _, answer: answer
        self.gate: threading.Event | None = None
        self.endpoint_url = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="small service")

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.gate is not None:
            self.gate.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def operations(self) -> list[str]:
        return [request.operation for request in self.requests]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20))
        self.endpoint_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _received(reader, writer)) is not None:
                self.requests.append(request)
                if self.gate is not None:
                    await self._loop.run_in_executor(None, self.gate.wait)
                answer = self.before(request) or self.after(request, self._done(request))
                if answer.lost:
                    return
                body = b"" if request.method == "HEAD" else answer.body
                headers = {"Content-Length": str(len(answer.body)), **answer.headers}
                lines = [
                    f"HTTP/1.1 {answer.status} Any",
                    *(f"{name}: {value}" for name, value in headers.items() if value),
                ]
                writer.write("\r\n".join([*lines, "", ""]).encode() + body[: answer.sent])
                await writer.drain()
                if answer.sent is not None:
                    return
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    def _done(self, request: Request) -> Answer:
        match request.operation:
            case "PutObject":
                self.objects[request.key] = request.body
                return Answer(headers={"ETag": _etag(request.body)})
            case "GetObject" | "HeadObject":
                found = self.objects.get(request.key)
                return refusal(404, "NoSuchKey") if found is None else Answer(200, found, {"ETag": _etag(found)})
            case "DeleteObjects":
                for key in re.findall(r"<Key>(.*?)</Key>", request.body.decode()):
                    self.objects.pop(key, None)
                return Answer(body=b"<DeleteResult/>")
        return self._listed(request)

    def _listed(self, request: Request) -> Answer:
        prefix, after = (request.query.get(name, [""])[0] for name in ("prefix", "continuation-token"))
        size = int(request.query["max-keys"][0])
        found = [key for key in sorted(self.objects) if key.startswith(prefix) and key > after]
        page, more = found[:size], len(found) > size
        text = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.objects[key])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in page
        )
        if more:
            text += f"<IsTruncated>true</IsTruncated><NextContinuationToken>{page[-1]}</NextContinuationToken>"
        return Answer(body=f"<ListBucketResult>{text}</ListBucketResult>".encode())


async def _received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect") == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    _, _, key = unquote(parts.path).lstrip("/").partition("/")
    return Request(method, key, parse_qs(parts.query, keep_blank_values=True), headers, body)


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def md5_header(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content).digest()).decode()


def only_old_headers(request: Request) -> Answer | None:
    """Refuse what came with newer checksums, and a put or delete that has none of the old ones."""
    newer = [
        name for name in request.headers if name.startswith(("x-amz-checksum", "x-amz-sdk-checksum", "x-amz-trailer"))
    ]
    if newer or "aws-chunked" in request.headers.get("content-encoding", ""):
        return refusal(400, "InvalidRequest", f"unknown header {newer}")
    if request.operation in {"PutObject", "DeleteObjects"}:
        given = request.headers.get("content-md5")
        if given is None:
            return refusal(400, "MissingContentMD5")
        if given != md5_header(request.body):
            return refusal(400, "BadDigest")
    return None
