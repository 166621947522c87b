"""A test that hangs says which promise it was proving, and what it waited for."""

import asyncio

import pytest

from strata_conformance import _runner, promise


class Unanswered:
    @promise("lease-1")
    async def test_it_answers(self) -> None:
        """It answers."""
        await self.answer()

    async def answer(self) -> None:
        await asyncio.Event().wait()


def test_a_test_that_hangs_names_its_promise_and_where_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the ID of the promise, the line of the test, and the innermost call below it."""
    monkeypatch.setattr(_runner, "PATIENCE", 0.0)
    with pytest.raises(TimeoutError) as caught:
        Unanswered().test_it_answers()  # type: ignore[unused-coroutine]  # the promise runs it

    assert str(caught.value).startswith("lease-1: not done after 0 seconds; waited in test_it_answers (test_runner.py:")
    assert ": await self.answer(), for wait (locks.py:" in str(caught.value)


def test_a_timeout_of_the_store_stays_what_it_is() -> None:
    """What a store raises itself is no hang of the test."""

    async def refuse() -> None:
        raise TimeoutError("the pool is exhausted")

    with pytest.raises(TimeoutError, match=r"^the pool is exhausted$"):
        _runner.run(refuse(), "lease-1")
