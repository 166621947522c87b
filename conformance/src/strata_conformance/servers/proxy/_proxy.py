"""The proxy."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from strata_conformance.servers._ports import HOST, free_port
from strata_conformance.servers._server import Protocol as Speech
from strata_conformance.servers.proxy._connection import Connection, abort
from strata_conformance.servers.proxy._dialect import Dialect, RawDialect
from strata_conformance.servers.proxy._fault import Action, At, UnfiredWireFaultError, WireFault
from strata_conformance.servers.proxy._plan import Plan
from strata_conformance.servers.proxy._postgres import PostgresDialect
from strata_conformance.servers.proxy._record import Recording, Request
from strata_conformance.servers.proxy._redis import RedisDialect

__all__ = ["FaultProxy"]

T = TypeVar("T")
_DIALECTS: Final[dict[Speech, Callable[[], Dialect]]] = {
    "postgres": PostgresDialect,
    "redis": RedisDialect,
    "raw": RawDialect,
}
_PATIENCE: Final = 20.0


class _Place(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def protocol(self) -> Speech: ...


class FaultProxy:
    """Stands in front of a server, counts what passes, and breaks it where a test says so.

        with FaultProxy.before(server) as proxy, store_at(proxy.url(server.url)) as store:
            fault = proxy.reset("reply", match=b"INSERT")
            ...  # the next insert is done by the server, and its answer is lost with the connection
            fault.wait()

    It works in a thread of its own, so that blocking and asynchronous tests use it alike.  A fault strikes what begins
    after it was planned: the ``nth`` connection, or the ``nth`` request for which `match` holds, or the reply to that
    request.  Requests and replies are whole ones (see `Request`); what clients send to log in passes untouched and
    uncounted, so that a reconnection does not use up a fault.  At its end the context fails if a fault never struck.

    A connection goes with a reset when the server cannot be reached, and ends when the server ends it.

    Args:
        host: Where the server is.
        port: Where the server is.
        protocol: How requests are found: ``postgres``, ``redis`` or, for anything else, ``raw``, where everything that
            comes in one piece is one.

    Attributes:
        host: Where clients connect.
        port: Where clients connect.
    """

    def __init__(self, host: str, port: int, protocol: Speech = "raw") -> None:
        self._behind: Final = (host, port)
        self._dialect: Final = _DIALECTS[protocol]
        self._plan: Final = Plan()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._broken: list[BaseException] = []
        self._accepted = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: asyncio.Server | None = None
        self.host: Final = HOST
        self.port = 0

    @classmethod
    def before(cls, server: _Place) -> Self:
        """Return one in front of a server, with its protocol; not yet started."""
        return cls(server.host, server.port, server.protocol)

    def url(self, url: str) -> str:
        """Return a URL of the server with the proxy in the place of the server."""
        parts = urlsplit(url)
        login, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{login}{at}{self.host}:{self.port}"))

    def reset(
        self,
        at: At,
        nth: int = 1,
        *,
        match: bytes | Callable[[Request], bool] | None = None,
        times: int | None = 1,
    ) -> WireFault:
        """Break a connection with a reset.

        Args:
            at: ``connect``: as soon as it is made.  ``request``: in place of the request, which never reaches the
                server.  ``reply``: in place of the reply, when the server has given it: the answer is lost.
            nth: Which one, from 1.
            match: Which requests count: those with these bytes in them, or those for which it is true; None: all.
            times: How many from the nth on; None: all.
        """
        return self._planned("reset", at, nth, match, times)

    def hang(
        self,
        at: At,
        nth: int = 1,
        *,
        match: bytes | Callable[[Request], bool] | None = None,
        times: int | None = 1,
    ) -> WireFault:
        """Let nothing pass any more, and keep the connection open, until `release`; the arguments are as for `reset`.

        ``connect``: in neither direction.  ``request``: the request and what follows it does not reach the server.
        ``reply``: the reply, which the server has given, and what follows it does not reach the client.
        """
        return self._planned("hang", at, nth, match, times)

    def cut(
        self,
        at: At,
        after: int,
        nth: int = 1,
        *,
        match: bytes | Callable[[Request], bool] | None = None,
        times: int | None = 1,
    ) -> WireFault:
        """Let so many bytes of a request or a reply pass, then reset; the other arguments are as for `reset`.

        Raises:
            ValueError: At ``connect``, where there are no bytes.
        """
        if at == "connect":
            message = "cut: a connection that is just made has no bytes; use reset"
            raise ValueError(message)
        return self._planned("cut", at, nth, match, times, after)

    def release(self, fault: WireFault) -> None:
        """Let what a fault holds up pass; it also strikes no more."""
        fault.withdraw()

        async def release() -> None:
            fault.release()

        self._do(release())

    def delay(self, *, requests: float = 0.0, replies: float = 0.0) -> None:
        """Let everything arrive later by so many seconds, from now on; what is sent together stays together."""
        self._plan.request_delay, self._plan.reply_delay = requests, replies

    def refuse(self) -> None:
        """Refuse new connections, as a machine does on which no server runs; those that are open stay."""
        self._do(self._stop_listening())

    def accept(self) -> None:
        """Accept connections again, on the same port."""
        self._do(self._listen())

    def reset_all(self) -> None:
        """Break every open connection with a reset."""
        self._do(self._cancel_all())

    @property
    def connections(self) -> int:
        """How many connections were opened."""
        return self._plan.connections

    @property
    def requests(self) -> int:
        """How many requests were sent; see `Request`."""
        return self._plan.requests

    @property
    def messages(self) -> Counter[str]:
        """How many messages of each kind the clients sent, but for the log-in: ``Bind``, ``EVALSHA``."""
        return Counter(self._plan.messages)

    @contextmanager
    def recording(self, *, settle: float = 0.02) -> Iterator[Recording]:
        """Record what passes in the block.

        Args:
            settle: Seconds for which every reply is held back meanwhile.  What a client sends in this time it sends
                without having waited for the reply; without it, a large pipeline would look like several round trips.
        """
        recording = Recording(settle=settle)
        self._plan.recordings.append(recording)
        try:
            yield recording
        finally:
            self._plan.recordings.remove(recording)

    @property
    def unfired(self) -> tuple[WireFault, ...]:
        """The faults that are still to strike for the first time."""
        return tuple(fault for fault in self._plan.faults if fault.is_unfired)

    def verify(self) -> None:
        """Make sure that every fault has struck.

        Raises:
            UnfiredWireFaultError: It names those that have not.
        """
        if self.unfired:
            raise UnfiredWireFaultError(self.unfired)

    def start(self) -> Self:
        """Listen on a free port."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="strata-fault-proxy", daemon=True)
        self._thread.start()
        for attempt in range(5):
            self.port = free_port()
            try:
                self._do(self._listen())
            except OSError:  # somebody was faster
                if attempt == 4:
                    self.close()
                    raise
            else:
                break
        return self

    def close(self) -> None:
        """Break what is open, and end.  Closing again does nothing."""
        if self._loop is None or self._thread is None:
            return
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()
        self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None:  # one that ended the test early says more than what it did not come to
            if self._broken:
                raise ExceptionGroup("the proxy failed", [e for e in self._broken if isinstance(e, Exception)])
            self.verify()

    def _planned(
        self,
        action: Action,
        at: At,
        nth: int,
        match: bytes | Callable[[Request], bool] | None,
        times: int | None,
        after: int = 0,
    ) -> WireFault:
        if nth < 1 or (times is not None and times < 1):
            message = f"nth and times are at least 1, not {nth} and {times}"
            raise ValueError(message)
        fault = WireFault(action, at, nth, times, _has(match) if isinstance(match, bytes) else match, after)
        self._plan.faults.append(fault)
        return fault

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "the proxy is not started"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, self.host, self.port, limit=1 << 20)

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            await asyncio.sleep(0)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._accepted += 1  # here, since the plan counts a connection when its task begins
        connection = Connection(self._accepted, self._dialect(), self._plan)
        task = asyncio.get_running_loop().create_task(connection.run((reader, writer), *self._behind))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, writer))

    def _ended(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        abort(writer)  # which a task that was cancelled before it began has not done
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken.append(error)

    async def _cancel_all(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end(self) -> None:
        await self._stop_listening()
        await self._cancel_all()
        await asyncio.sleep(0)  # so that what was aborted is closed before the loop is


def _has(content: bytes) -> Callable[[Request], bool]:
    text = content.decode(errors="replace")
    return lambda request: content in request.content or text in request.text
