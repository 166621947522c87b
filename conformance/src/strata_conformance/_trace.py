"""Records what a test asks of the store under test, for the report of a failure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from strata_conformance.stores import Call, RecordingBackend, RecordingStore

__all__ = ["Trace"]

_KEPT: Final = 20
_WIDTH: Final = 300


class Trace:
    """The last calls of one test; `str` gives them a line each, oldest first."""

    def __init__(self) -> None:
        self._calls: deque[tuple[int, Call]] = deque(maxlen=_KEPT)
        self._handles = 0
        self._count = 0

    def __str__(self) -> str:
        lines = [f"... {self._count - len(self._calls)} before"] if self._count > len(self._calls) else []
        return "\n".join([*lines, *(_line(handle, call) for handle, call in self._calls)])

    def around(self, name: str, factory: Callable[..., Any]) -> Callable[..., Any]:
        """Return the factory of a fixture, what it makes recorded."""
        if name.endswith("_backend"):
            return lambda: self._backend(factory())
        return lambda **options: _Opening(factory(**options), self._tap())

    def _backend(self, backend: Any) -> RecordingBackend:
        recording = RecordingBackend(backend)
        recording.calls = self._tap()
        return recording

    def _tap(self) -> _Tap:
        self._handles += 1
        return _Tap(self, self._handles)

    def take(self, handle: int, call: Call) -> None:
        """Keep a call, and forget the oldest."""
        self._count += 1
        self._calls.append((handle, call))


class _Tap(list[Call]):
    """Where a recorder puts its calls: it hands them on and keeps none."""

    def __init__(self, trace: Trace, handle: int) -> None:
        super().__init__()
        self._trace = trace
        self._handle = handle

    def append(self, call: Call) -> None:
        self._trace.take(self._handle, call)


class _Opening:
    """What a factory of stores gives, with a recorder around the store inside."""

    def __init__(self, opening: Any, tap: _Tap) -> None:
        self._opening = opening
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opening, name)

    async def __aenter__(self) -> RecordingStore:
        recording = RecordingStore(await self._opening.__aenter__())
        recording.calls = self._tap
        return recording

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, error, trace)  # type: ignore[no-any-return]  # as it is


def _line(handle: int, call: Call) -> str:
    try:
        given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
        came = f"raised {call.error!r}" if call.error is not None else f"-> {call.outcome!r}"
    except Exception as error:  # noqa: BLE001  # such as an integer of many digits, or a record nested without end
        given, came = "...", f"... (not shown: {type(error).__name__})"
    return f"#{handle} {_short(f'{call.op}({given})')} {_short(came)}"


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
