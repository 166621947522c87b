"""Runs the coroutine of a test, whatever asyncio plugin is installed or not."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

__all__ = ["PATIENCE", "run"]

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds after which a test that hangs fails, with the place where it hangs."""


def run(main: Coroutine[Any, Any, T], what: str = "the test") -> T:
    """Run `main` in an event loop of its own and return its result.

    Raises:
        TimeoutError: It took longer than `PATIENCE`; names `what`, and where it waited.
    """

    async def bounded() -> T:
        try:
            async with asyncio.timeout(PATIENCE) as limit:
                return await main
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"{what}: not done after {PATIENCE:g} seconds{_waiting(error.__cause__ or error.__context__)}"
            raise TimeoutError(message) from error

    with asyncio.Runner() as runner:
        return runner.run(bounded())


def _waiting(cancelled: BaseException | None) -> str:
    """Tell where a coroutine was cancelled: the line of the test, and the innermost call below it."""
    frames = traceback.extract_tb(cancelled.__traceback__)[1:] if cancelled else []  # the first is `bounded`
    places = [f"{frame.name} ({Path(frame.filename).name}:{frame.lineno}): {frame.line}" for frame in frames]
    return "; waited in " + ", for ".join(dict.fromkeys([places[0], places[-1]])) if places else ""
