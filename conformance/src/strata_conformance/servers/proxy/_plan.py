"""What a proxy does to its connections, and what it has seen of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from strata_conformance.servers.proxy._fault import At, WireFault
from strata_conformance.servers.proxy._record import Recording, Request

__all__ = ["Plan"]


class Plan:
    """Shared by the connections of one proxy.

    Attributes:
        faults: What was planned, in that order; of several that strike the same, the first does.
        request_delay: Seconds by which everything reaches the server later.
        reply_delay: Seconds by which everything reaches the client later.
        recordings: Those that are going on.
        connections: How many were opened.
        requests: How many were seen.
        messages: How many of each kind the clients sent.
    """

    def __init__(self) -> None:
        self.faults: list[WireFault] = []
        self.request_delay = 0.0
        self.reply_delay = 0.0
        self.recordings: list[Recording] = []
        self.connections = 0
        self.requests = 0
        self.messages: Counter[str] = Counter()

    @property
    def settled_reply_delay(self) -> float:
        """The reply delay, or what the recordings need to see what a client sends without waiting."""
        return max(self.reply_delay, *(recording.settle for recording in self.recordings), 0.0)

    def at_connect(self) -> WireFault | None:
        """Count a connection; return what strikes it."""
        self.connections += 1
        for recording in self.recordings:
            recording.connections += 1
        return self._first("connect", None)

    def at_request(self, request: Request) -> tuple[WireFault | None, WireFault | None]:
        """Count a request; return what strikes it and what strikes its reply."""
        self.requests += 1
        self.count(request.messages)
        for recording in self.recordings:
            recording.requests.append(request)
        return self._first("request", request), self._first("reply", request)

    def count(self, kinds: Iterable[str]) -> None:
        """Count messages."""
        kinds = tuple(kinds)
        self.messages.update(kinds)
        for recording in self.recordings:
            recording.messages.update(kinds)

    def _first(self, at: At, request: Request | None) -> WireFault | None:
        struck = [fault for fault in tuple(self.faults) if fault.at == at and fault.strikes(request)]
        return struck[0] if struck else None
