"""Runs the coroutine of a test, whatever asyncio plugin is installed or not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

__all__ = ["PATIENCE", "run"]

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds after which a test that hangs fails, with the place where it hangs."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in an event loop of its own and return its result.

    Raises:
        TimeoutError: It took longer than `PATIENCE`.
    """

    async def bounded() -> T:
        async with asyncio.timeout(PATIENCE):
            return await main

    with asyncio.Runner() as runner:
        return runner.run(bounded())
