"""Cancels a call at an exact place."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["CancelAt"]

T = TypeVar("T")


class CancelAt(Generic[T]):
    """Awaits a coroutine and cancels its task at the nth place where it waits.

    The task is cancelled as ``task.cancel()`` does it: either while what it waits for is still under way (early), or
    in the moment when that has come and the coroutine has not yet learnt of it (late).

    Args:
        call: The coroutine.
        nth: At which suspension, from 1.
        late: When what it waits for has come, instead of before.

    Attributes:
        reached: Whether the coroutine suspended that often.
    """

    def __init__(self, call: Coroutine[Any, Any, T], nth: int, *, late: bool) -> None:
        self._call = call
        self._nth = nth
        self._late = late
        self.reached = False

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._call.__await__()
        task = asyncio.current_task()
        assert task is not None
        suspensions = 0
        error: BaseException | None = None
        while True:
            try:
                waited_for = next(steps) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # what the coroutine returned
            error = None
            suspensions += 1
            if suspensions == self._nth:
                self.reached = True
                if self._late and isinstance(waited_for, asyncio.Future):
                    waited_for.add_done_callback(lambda _: task.cancel())
                else:
                    task.cancel()
            try:
                yield waited_for
            except BaseException as raised:  # noqa: BLE001  # handed on to the coroutine, which decides
                error = raised

    async def outcome(self) -> T | BaseException:
        """Await in a task of its own; return the result, or the exception it ended with."""

        async def main() -> T:
            return await self

        (result,) = await asyncio.gather(asyncio.create_task(main()), return_exceptions=True)
        return result
