"""All that the backend talks to: scripts and commands in, answers out."""

from __future__ import annotations

from collections.abc import Sequence

from strata_redis._address import Mode, Target
from strata_redis._calls import Answer, Call, Lost, ServerError
from strata_redis._cluster import Cluster
from strata_redis._node import node_maker, sentinel_maker
from strata_redis._options import RedisOptions
from strata_redis._routes import Route, Sentinels, Single

__all__ = ["Server", "connect"]


class Server:
    """Sends calls by whatever route, and scripts by their digest.

    Args:
        route: How to reach the servers.
        only_reads: Have the server make sure that scripts write nothing, where it can (from Redis 7.0 on).
        spans: Whether a script may have keys of several buckets; whoever finds out that it may not says so.
        waits: Whether replicas must receive what is written.
    """

    def __init__(self, route: Route, *, only_reads: bool, spans: bool, waits: bool) -> None:
        self._route = route
        self._only_reads = only_reads
        self.spans = spans
        self.waits = waits

    async def run(self, calls: Sequence[Call], *, writes: bool = False) -> list[Answer]:
        """Return an answer for each call; where they write, replicas may have to receive that.

        A script that a server does not know, because it is new there, was restarted, took over from another one or had
        its scripts flushed, was not done, and is sent in full.
        """
        answers = await self._send(calls, writes=writes)
        if self._only_reads and any(_is_unknown_command(answer) for answer in answers):
            self._only_reads = False
            answers = await self._send(calls)
        unknown = [
            at for at, answer in enumerate(answers) if isinstance(answer, ServerError) and answer.code == "NOSCRIPT"
        ]
        if unknown:
            again = await self._send([calls[at] for at in unknown], in_full=True, writes=writes)
            for at, answer in zip(unknown, again, strict=True):
                answers[at] = answer
        return answers

    async def read(self, calls: Sequence[Call]) -> list[Answer]:
        """Return an answer for each of some calls that only read.

        One whose connection broke is made again, once.  A server that did not answer in time is not asked again:
        whoever called has waited long enough.
        """
        answers = await self.run(calls)
        if broken := [at for at, answer in enumerate(answers) if _is_broken(answer)]:
            again = await self.run([calls[at] for at in broken])
            for at, answer in zip(broken, again, strict=True):
                answers[at] = answer
        return answers

    async def _send(self, calls: Sequence[Call], *, in_full: bool = False, writes: bool = False) -> list[Answer]:
        only_reads = self._only_reads
        return await self._route.ask(
            [(call.tag, call.words(in_full=in_full, only_reads=only_reads)) for call in calls], writes=writes
        )

    async def close(self) -> None:
        """Disconnect."""
        await self._route.close()


def connect(target: Target, options: RedisOptions, *, only_reads: bool) -> Server:
    """Return the servers that a URL leads to; no connection is made yet."""
    make = node_maker(target, options)
    route: Route
    if target.mode is Mode.CLUSTER:
        route = Cluster(target.addresses, make)
    elif target.mode is Mode.SENTINEL:
        route = Sentinels(target.addresses, target.master, sentinel_maker(target, options), make)
    else:
        route = Single(make(target.addresses[0]))
    return Server(route, only_reads=only_reads, spans=target.mode is not Mode.CLUSTER, waits=options.replicas > 0)


def _is_broken(answer: Answer) -> bool:
    return isinstance(answer, Lost) and isinstance(answer.cause, OSError) and not isinstance(answer.cause, TimeoutError)


def _is_unknown_command(answer: Answer) -> bool:
    return isinstance(answer, ServerError) and "unknown command" in str(answer).lower()
