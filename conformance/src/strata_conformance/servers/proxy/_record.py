"""What passed a proxy."""

from __future__ import annotations

from collections import Counter

import attrs

__all__ = ["Recording", "Request"]


@attrs.frozen
class Request:
    """What a client sent up to where it waits for an answer.

    For Redis that is one command, for PostgreSQL everything up to a ``Query`` or a ``Sync``, for other servers whatever
    came in one piece.

    Attributes:
        connection: Of which connection, from 1.
        kind: The command in capitals (``EVALSHA``), or the message that ends the request (``Query``, ``Sync``).
        messages: The kinds of all its messages, in order.
        text: The statements of it, one a line, also those that were prepared before; for Redis the same as `kind`.
        starts_round_trip: Whether every earlier request of its connection was answered when it was sent.
        content: The bytes.
    """

    connection: int
    kind: str
    messages: tuple[str, ...]
    text: str
    starts_round_trip: bool
    content: bytes = attrs.field(repr=False)


@attrs.define
class Recording:
    """What passed while it was being recorded; what a client sends to log in does not count.

    Attributes:
        connections: How many were opened.
        requests: The requests, in the order of their arrival.
        messages: How many messages of each kind the clients sent.
        settle: Seconds for which each reply is held back meanwhile.
    """

    connections: int = 0
    requests: list[Request] = attrs.Factory(list)
    messages: Counter[str] = attrs.Factory(Counter)
    settle: float = 0.0

    @property
    def round_trips(self) -> int:
        """How often a client waited: requests that it sent without waiting for an earlier answer count once.

        A ``Flush`` of PostgreSQL asks for an answer within a request, so it counts too.
        """
        return sum(request.starts_round_trip for request in self.requests) + self.messages["Flush"]
