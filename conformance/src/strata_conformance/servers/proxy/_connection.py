"""One connection through a proxy."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeAlias

import attrs

from strata_conformance.servers.proxy._dialect import Dialect, Piece
from strata_conformance.servers.proxy._fault import WireFault
from strata_conformance.servers.proxy._plan import Plan
from strata_conformance.servers.proxy._record import Request

__all__ = ["Connection", "abort"]

_Step: TypeAlias = Callable[[], Awaitable[None]]
_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CHUNK: Final = 1 << 20


class _ResetError(Exception):
    """The connection is over, and the client is to see a reset."""


@attrs.define
class _Pending:
    """A request whose reply has not come whole, and the fault that awaits the reply."""

    kind: str
    fault: WireFault | None = None
    reply: bytearray = attrs.Factory(bytearray)


class _Lane:
    """One direction: what is to happen in it, in order, each not before its time."""

    def __init__(self, writer: asyncio.StreamWriter, delay: Callable[[], float]) -> None:
        self._writer = writer
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self._steps: asyncio.Queue[tuple[float, _Step | None]] = asyncio.Queue()
        self.hangs = False

    def then(self, step: _Step | None) -> None:
        """Do something after all that is already to be done; None: the stream ends."""
        self._steps.put_nowait((self._loop.time() + self._delay(), step))

    def send(self, content: bytes) -> None:
        self.then(lambda: self._write(content))

    def hang(self, fault: WireFault) -> None:
        async def step() -> None:
            fault.fire()
            await fault.released()
            self.hangs = False

        self.hangs = True
        self.then(step)

    def reset(self, fault: WireFault, content: bytes = b"") -> None:
        async def step() -> None:
            if content:
                await self._write(content)
            fault.fire()
            raise _ResetError

        self.then(step)

    async def run(self) -> None:
        """Do it, until the stream ends."""
        while True:
            due, step = await self._steps.get()
            if (early := due - self._loop.time()) > 0:
                await asyncio.sleep(early)
            if step is None:
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                return
            await step()

    async def _write(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()


class Connection:
    """Passes on what both sides send, and lets faults strike it.

    Args:
        number: Which connection of the proxy it is, from 1.
        dialect: How it is read.
        plan: The faults, the delays and the counts.
    """

    def __init__(self, number: int, dialect: Dialect, plan: Plan) -> None:
        self._number = number
        self._dialect = dialect
        self._plan = plan
        self._pending: deque[_Pending] = deque()
        self._unanswered = 0  # requests whose reply has not been handed to the client
        self._parts: list[Piece] = []
        self._kept = bytearray()  # what of the parts is not sent yet

    async def run(self, client: _Streams, host: str, port: int) -> None:
        """Serve a client until either side is gone; the client sees a reset where the proxy was not told otherwise."""
        reader, writer = client
        try:
            sent = await self._strike_at_connect(reader)
            behind = await asyncio.open_connection(host, port, limit=_CHUNK)
            try:
                await self._pass(sent, (reader, writer), behind)
            finally:
                await _close(behind[1])
        except (OSError, _ResetError):
            abort(writer)
        except BaseException:
            abort(writer)
            raise
        finally:
            await _close(writer)

    async def _strike_at_connect(self, reader: asyncio.StreamReader) -> bytes:
        """Let a fault strike; return what the client has sent meanwhile."""
        fault = self._plan.at_connect()
        if fault is None:
            return b""
        fault.fire()
        if fault.action != "hang":
            raise _ResetError
        sent = bytearray()
        released = asyncio.create_task(fault.released())
        gone = asyncio.create_task(_collect(reader, sent))
        try:
            await asyncio.wait([released, gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            released.cancel()
            gone.cancel()
            await asyncio.gather(released, gone, return_exceptions=True)
        if not gone.cancelled():
            raise _ResetError  # the client has given up
        return bytes(sent)

    async def _pass(self, sent: bytes, client: _Streams, server: _Streams) -> None:
        up = _Lane(server[1], lambda: self._plan.request_delay)
        down = _Lane(client[1], lambda: self._plan.settled_reply_delay)
        if sent:
            self._take(sent, up)
        tasks = [
            asyncio.create_task(work)
            for work in (up.run(), down.run(), self._up(client[0], up, down), self._down(server[0], down))
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                raise outcome

    async def _up(self, reader: asyncio.StreamReader, up: _Lane, down: _Lane) -> None:
        async for data in _chunks(reader):
            self._take(data, up)
        if up.hangs or down.hangs:
            raise _ResetError  # the client has given up, so nobody waits for what hangs
        up.then(None)

    def _take(self, data: bytes, up: _Lane) -> None:
        for piece in self._dialect.from_client(data):
            if piece.is_login or not (piece.is_part or piece.ends):
                self._pass_over(piece, up)
                continue
            self._parts.append(piece)
            self._kept += piece.content
            if piece.ends:
                self._request(up)
            elif piece.asks:
                up.send(bytes(self._kept))
                self._kept.clear()

    def _pass_over(self, piece: Piece, up: _Lane) -> None:
        if not piece.is_login:
            self._plan.count([piece.kind])
        if piece.ends:
            self._pending.append(_Pending(piece.kind))
            self._unanswered += 1
        up.send(piece.content)

    def _request(self, up: _Lane) -> None:
        parts, kept = self._parts, bytes(self._kept)
        self._parts, self._kept = [], bytearray()
        request = Request(
            self._number,
            parts[-1].kind,
            tuple(part.kind for part in parts),
            "\n".join(part.text for part in parts if part.text),
            not self._unanswered,
            b"".join(part.content for part in parts),
        )
        fault, later = self._plan.at_request(request)
        self._pending.append(_Pending(request.kind, later))
        self._unanswered += 1
        if fault is not None and fault.action != "hang":
            up.reset(fault, kept[: fault.after])
            return
        if fault is not None:
            up.hang(fault)
        up.send(kept)

    async def _down(self, reader: asyncio.StreamReader, down: _Lane) -> None:
        async for data in _chunks(reader):
            for piece in self._dialect.from_server(data):
                self._reply(piece, down)
        down.then(None)

    def _reply(self, piece: Piece, down: _Lane) -> None:
        pending = self._pending[0] if self._pending else None
        if pending is not None and piece.kind == "CopyInResponse" and pending.kind == "Sync":
            self._pending.popleft()  # the server passes over this Sync; the one after the data counts
            self._unanswered -= 1
        fault = None if pending is None else pending.fault
        if pending is None or fault is None:
            down.send(piece.content)
        else:
            pending.reply += piece.content
        if pending is None or not piece.ends:
            return
        self._pending.popleft()
        if fault is not None and fault.action != "hang":
            down.reset(fault, bytes(pending.reply[: fault.after]))
            return
        if fault is not None:
            down.hang(fault)
            down.send(bytes(pending.reply))
        down.then(self._answered)

    async def _answered(self) -> None:
        self._unanswered -= 1


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await reader.read(_CHUNK):
        yield data


async def _collect(reader: asyncio.StreamReader, into: bytearray) -> None:
    async for data in _chunks(reader):
        into += data


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection when what is written has left, and not much later than that."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
    writer.transport.abort()


def abort(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other side sees a reset, not an end."""
    end: socket.socket | None = writer.get_extra_info("socket")
    if end is not None:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
