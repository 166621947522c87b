"""The machine's clock, as leases are counted by it."""

from __future__ import annotations

import time

import pytest

from strata_core.clock import SystemClock, _choose_monotonic


def test_it_counts_the_time_in_which_the_machine_slept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", {7: 3.5}.__getitem__)

    assert 3.5 == _choose_monotonic()()


def test_where_there_is_no_such_clock_the_monotonic_one_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)

    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    assert before <= _choose_monotonic()() <= time.clock_gettime(time.CLOCK_MONOTONIC)

    monkeypatch.delattr(time, "CLOCK_MONOTONIC")
    before = time.monotonic()
    assert before <= _choose_monotonic()() <= time.monotonic()


def test_it_never_goes_backwards() -> None:
    clock = SystemClock()
    moments = [clock.monotonic() for _ in range(100)]

    assert sorted(moments) == moments
