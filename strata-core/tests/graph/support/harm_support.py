"""A process that comes to harm, at any of its calls of the store and in any of its nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from machine_support import TTL

from strata_core.errors import StoreBusyError, StoreUnavailableError
from strata_core.records import Checkpoint
from strata_core.testing import FakeClock

CALL_HARM = ("down", "busy", "maybe", "maybe not", "jump", "then jump", "cancel", "then cancel", "freeze",
             "then freeze", "die", "then die")  # fmt: skip
NODE_HARM = ("fail", "jump", "cancel", "freeze", "die")
GENTLE = ("fail", "cancel", "then cancel")
"""What a thread survives whose rows are only written where it stops."""


class HarmError(Exception):
    """What is done to a node from outside."""


class DeathError(BaseException):
    """The process is gone: no code of it runs any more."""


class Process:
    """A store as one process has it.

    Args:
        store: The store.
        clock: Its clock.
        at_calls: By the number of a call, what happens there.
        in_nodes: By the number of an attempt of a node, what happens in it.
        on_saved: Told every checkpoint that the store has taken, also when nobody hears of it.
    """

    def __init__(
        self,
        store: Any,
        clock: FakeClock,
        at_calls: dict[int, str],
        in_nodes: dict[int, str],
        on_saved: Callable[[Checkpoint], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._at_calls = at_calls
        self._in_nodes = in_nodes
        self._on_saved = on_saved
        self._calls = 0
        self._attempts = 0
        self.task: asyncio.Task[Any] | None = None
        self.is_dead = False
        self.frozen = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    def __getattr__(self, method: str) -> Any:
        bound = getattr(self._store, method)

        async def call(*args: Any, **options: Any) -> Any:
            return await self._around(method, lambda: self._do(bound, args, options))

        return call

    async def _do(self, bound: Any, args: Any, options: Any) -> Any:
        answer = await bound(*args, **options)
        row = options.get("save") or (args[0] if args and isinstance(args[0], Checkpoint) else None)
        if row is not None and answer is not None:
            self._on_saved(row)
        return answer

    async def _around(self, method: str, do: Callable[[], Any]) -> Any:
        await self.go.wait()
        self._check_alive()
        harm = None
        if method != "renew_lease":  # whose number would depend on the time
            harm = self._at_calls.get(self._calls)
            self._calls += 1
        await self._before(harm)
        if harm == "down":
            raise StoreUnavailableError("it is down")
        if harm == "busy":
            raise StoreBusyError("it is busy")
        if harm == "maybe not":
            raise StoreUnavailableError("no answer", maybe_written=True)
        answer = await do()
        if harm == "maybe":
            raise StoreUnavailableError("no answer", maybe_written=True)
        await self._after(harm)
        return answer

    async def in_node(self, may_fail: bool) -> None:
        """Come to harm in a node, perhaps."""
        harm = self._in_nodes.get(self._attempts)
        self._attempts += 1
        if harm == "fail" and may_fail:
            raise HarmError
        if harm == "die":
            self.is_dead = True
            raise DeathError
        await self._before(harm)

    async def _before(self, harm: str | None) -> None:
        if harm == "jump":
            self._clock.advance(TTL)
        elif harm == "cancel":
            await self._cancel()
        elif harm == "freeze":
            await self._freeze()
        elif harm == "die":
            self._die()

    async def _after(self, harm: str | None) -> None:
        if harm == "then jump":
            self._clock.advance(TTL)
        elif harm == "then cancel":
            await self._cancel()
        elif harm == "then freeze":
            await self._freeze()
        elif harm == "then die":
            self._die()

    async def _cancel(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.sleep(0)

    async def _freeze(self) -> None:
        self.go.clear()
        self.frozen.set()
        await self.go.wait()

    def _die(self) -> None:
        self.is_dead = True
        self._check_alive()

    def _check_alive(self) -> None:
        if self.is_dead:
            raise ConnectionAbortedError("this process is dead")

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self.frozen.clear()
        self.go.set()
