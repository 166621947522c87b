"""Input that every store refuses, and how to see that it does."""

from __future__ import annotations

import collections
import decimal
import enum
import fractions
import uuid
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from strata_conformance._samples import BASE, LONG
from strata_conformance.suite._base import Store
from strata_core.capabilities import Capability
from strata_core.errors import InvalidInputError
from strata_core.records import CheckpointStatus, Revision

__all__ = [
    "BAD_EXPECTED",
    "BAD_LIMITS",
    "BAD_METADATA",
    "BAD_MOMENTS",
    "BAD_POSITIONS",
    "BAD_STATES",
    "BAD_THREAD_IDS",
    "BAD_TTLS",
    "BAD_WRITE_IDS",
    "HUGE",
    "SURROGATE",
    "Attempt",
    "each",
    "refused",
    "untouched",
]

NAIVE: Final = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001  # what must be refused
SURROGATE: Final = "\ud83d"
HUGE: Final = 10**5000
"""More digits than Python puts into a message by itself."""


class _Text(str):
    __slots__ = ()


class _Number(enum.IntEnum):
    ONE = 1


BAD_THREAD_IDS: Final[list[Any]] = [
    None,
    1,
    True,
    b"x",
    uuid.UUID(int=1),
    ["t"],
    _Text("t"),
    "",
    "a\x00b",
    "\x00",
    SURROGATE,
    "a" + SURROGATE,
    "x" * 513,
    "\u00e9" * 257,
    "\U0001f600" * 129,
]

BAD_STATES: Final[list[tuple[Any, str]]] = [
    ({"a": float("nan")}, "state.a"),
    ({"items": [0, 1, 2, {"price": float("inf")}]}, "state.items[3].price"),
    ({"a": [[-float("inf")]]}, "state.a[0][0]"),
    ({"a": SURROGATE}, "state.a"),
    ({"a": {"b": ["x", SURROGATE + "y"]}}, "state.a.b[1]"),
    ({SURROGATE: 1}, "state"),
    ({"a": {SURROGATE: 1}}, "state.a"),
    ({1: "x"}, "state"),
    ({None: "x"}, "state"),
    ({True: "x"}, "state"),
    ({"a": {1.5: "x"}}, "state.a"),
    ({"a": [{("t",): 1}]}, "state.a[0]"),
    ({"a": {b"k": 1}}, "state.a"),
    ({"a": (1, 2)}, "state.a"),
    ({"a": {1, 2}}, "state.a"),
    ({"a": frozenset()}, "state.a"),
    ({"a": b"bytes"}, "state.a"),
    ({"a": [bytearray(b"x")]}, "state.a[0]"),
    ({"a": range(3)}, "state.a"),
    ({"a": object()}, "state.a"),
    ({"a": decimal.Decimal("1.5")}, "state.a"),
    ({"a": fractions.Fraction(1, 3)}, "state.a"),
    ({"a": 1 + 2j}, "state.a"),
    ({"a": BASE}, "state.a"),
    ({"a": timedelta(1)}, "state.a"),
    ({"a": uuid.UUID(int=1)}, "state.a"),
    ({"a": [_Text("x")]}, "state.a[0]"),
    ({"a": _Number.ONE}, "state.a"),
    ({"a": {"b": CheckpointStatus.RUNNING}}, "state.a.b"),
    ({"a": collections.OrderedDict(b=1)}, "state.a"),
    ({"a": collections.Counter("aab")}, "state.a"),
    ({"a": collections.deque([1])}, "state.a"),
    ({"a": 10**4300}, "state.a"),
    ({"a": [-(10**4300)]}, "state.a[0]"),
    ({"a": 1 << 20_000}, "state.a"),
]

BAD_METADATA: Final[list[Any]] = [
    {"a": 1},
    {"a": None},
    {"a": True},
    {"a": ["x"]},
    {1: "x"},
    {None: "x"},
    {b"a": "x"},
    {"a": "x\x00"},
    {"a\x00": "x"},
    {"a": SURROGATE},
    {SURROGATE: "x"},
    {"k" * 129: "v"},
    {"\u00e9" * 65: "v"},
    {"k": "v" * 1025},
    {"k": "\u00e9" * 513},
    {"fine": "fine", "k": 1.5},
]

BAD_LIMITS: Final[list[Any]] = [0, -1, True, False, 1001, 10**12, 10**30, "1", "1; drop table", 1.0, None]
BAD_POSITIONS: Final[list[Any]] = [-1, True, "0", 1.0, -(10**30), 2**31, 2**63, 10**30]
BAD_WRITE_IDS: Final[list[Any]] = [b"", b"7 bytes", b"9 bytes !", b"x" * 16, "8 chars!", bytearray(8), 8]
BAD_TTLS: Final[list[Any]] = [timedelta(0), timedelta(microseconds=-1), -LONG, timedelta.max, 30, 1.5, None, "1h"]
BAD_MOMENTS: Final[list[Any]] = [NAIVE, "2026-03-01T12:00:00Z", 1_770_000_000, BASE.date()]
BAD_EXPECTED: Final[list[Any]] = [
    -1,
    2**31,
    2**63,
    10**30,
    Revision(2**31, b"x" * 8),
    True,
    "0",
    0.0,
    b"12345678",
    Revision(-1, b"x" * 8),
    Revision(0, b"short"),
    Revision(0, "x" * 8),  # type: ignore[arg-type]  # what must be refused
    Revision(True, b"x" * 8),
]

Attempt = tuple[str, Callable[[Any], Awaitable[Any]]]
"""A name for a report, whose first word is the argument at fault, and a call that must be refused."""


def each(name: str, values: Iterable[Any], ask: Callable[[Any, Any], Awaitable[Any]]) -> list[Attempt]:
    """Return an attempt for each value: `ask` gets the store and the value."""

    def attempt(value: Any) -> Callable[[Any], Awaitable[Any]]:
        return lambda store: ask(store, value)

    return [(f"{name} #{n} {_shown(value)}", attempt(value)) for n, value in enumerate(values)]


def _shown(value: object) -> str:
    try:
        return ascii(value)[:50]
    except ValueError:  # an integer that Python does not spell out
        return type(value).__name__


async def refused(store: Store, attempts: Iterable[Attempt]) -> dict[str, str]:
    """Make each attempt; return for each the argument that its error names, or what happened instead."""
    outcomes: dict[str, str] = {}
    for name, attempt in attempts:
        try:
            result = await attempt(store)
        except InvalidInputError as error:
            outcomes[name] = error.argument
        except Exception as error:  # noqa: BLE001  # any other error is a finding, shown in the comparison
            outcomes[name] = f"raised {type(error).__name__}: {error}"
        else:
            outcomes[name] = f"returned {result!r}"
    return outcomes


async def untouched(store: Store) -> None:
    """Assert that the storage is as empty as it was."""
    if Capability.QUERY in store.capabilities:
        assert [] == list((await store.list_threads()).threads)
    assert await store.load("t") is None
    assert await store.live_lease("t") is None
