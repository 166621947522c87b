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
        if name == "open_blobs":
            return lambda: self._blobs(factory())
        if name.endswith("_backend"):
            return lambda *arguments: self._backend(factory(*arguments))
        return lambda *arguments, **options: _Opening(factory(*arguments, **options), self._tap())

    def _backend(self, backend: Any) -> RecordingBackend:
        recording = RecordingBackend(backend)
        recording.calls = self._tap()
        return recording

    def _blobs(self, blobs: Any) -> Any:
        tap = self._tap()
        return _BlobOpening(blobs, tap) if hasattr(blobs, "__aenter__") else _RecordingBlobs(blobs, tap)

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


class _RecordingBlobs:
    """A blob store around another one, whose calls it hands to a tap."""

    def __init__(self, blobs: Any, tap: _Tap) -> None:
        self._blobs = blobs
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    async def put(self, *arguments: Any) -> None:
        await self._recorded("put", arguments)

    async def get(self, *arguments: Any) -> Any:
        return await self._recorded("get", arguments)

    async def delete_thread(self, *arguments: Any) -> None:
        await self._recorded("delete_thread", arguments)

    async def _recorded(self, op: str, arguments: tuple[Any, ...]) -> Any:
        given = dict(zip(("thread_id", "digest", "content"), arguments, strict=False))
        try:
            outcome = await getattr(self._blobs, op)(*arguments)
        except BaseException as error:
            self._tap.append(Call(op, given, error=error))
            raise
        self._tap.append(Call(op, given, outcome))
        return outcome


class _BlobOpening:
    """An async context manager of a blob store, with a recorder around the store inside."""

    def __init__(self, opening: Any, tap: _Tap) -> None:
        self._opening = opening
        self._tap = tap

    async def __aenter__(self) -> _RecordingBlobs:
        return _RecordingBlobs(await self._opening.__aenter__(), self._tap)

    async def __aexit__(self, *error: object) -> bool | None:
        return await self._opening.__aexit__(*error)  # type: ignore[no-any-return]  # as it is


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
        given = ", ".join(f"{name}={_text(value)}" for name, value in call.arguments.items())
        came = f"raised {call.error!r}" if call.error is not None else f"-> {_text(call.outcome)}"
    except Exception as error:  # noqa: BLE001  # such as an integer of many digits, or a record nested without end
        given, came = "...", f"... (not shown: {type(error).__name__})"
    return f"#{handle} {_short(f'{call.op}({given})')} {_short(came)}"


def _text(value: object) -> str:
    if isinstance(value, bytes) and len(value) > _WIDTH // 4:
        return f"{value[: _WIDTH // 4]!r}... ({len(value):,} bytes)"
    return repr(value)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
