"""What a random program did, as the calls that a person would write to see it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, NoReturn

import attrs

from strata_conformance._samples import BASE
from strata_core.records import Checkpoint, Lease

__all__ = ["Script"]


class Script:
    """Collects calls, and fails with them.

    Args:
        run: The number of the program, which is left out of what is shown.

    Attributes:
        has_failed: Whether it has.
    """

    def __init__(self, run: str) -> None:
        self._prefix = f"{run}:"
        self._lines: list[str] = []
        self.has_failed = False

    def note(self, line: str) -> None:
        """Add a line."""
        self._lines.append(line)

    def opened(self, handle: str, options: Mapping[str, Any]) -> None:
        """Add the opening of a handle."""
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        self.note(f"{handle} = await opened.enter_async_context(open_store({given}))")

    def call(self, handle: str, op: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Add a call of a port."""
        shown = [self._shown(value) for value in arguments]
        shown += [f"{name}={self._shown(value)}" for name, value in named.items()]
        self.note(f"await {handle}.{op}({', '.join(shown)})")

    def fail(self, expected: object, got: object) -> NoReturn:
        """Fail with what should have come of the last call, and what did.

        Raises:
            AssertionError: Always.
        """
        self.has_failed = True
        raise AssertionError(
            f"the last call of this program came out wrong\n\n{self}\n\n"
            f"expected: {self._outcome(expected)}\n     got: {self._outcome(got)}"
        )

    def explain(self, error: BaseException) -> None:
        """Add the program to an error that is none of ours."""
        self.has_failed = True
        error.add_note(f"raised by the last call of this program:\n\n{self}")

    def __str__(self) -> str:
        return "\n".join(f"    {line}" for line in self._lines)

    def _outcome(self, value: object) -> str:
        return f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else self._shown(value)

    def _shown(self, value: Any) -> str:
        if isinstance(value, Enum):
            return f"{type(value).__name__}.{value.name}"
        if isinstance(value, str):
            return repr(value.removeprefix(self._prefix))
        if isinstance(value, datetime):
            return f"BASE + {value - BASE!r}".replace("datetime.", "") if value != BASE else "BASE"
        if isinstance(value, timedelta):
            return repr(value).removeprefix("datetime.")
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{key!r}: {self._shown(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list | tuple | set | frozenset):
            inner = ", ".join(self._shown(item) for item in value)
            brackets = {list: "[]", tuple: "()"}.get(type(value), "{}")
            return f"{brackets[0]}{inner}{brackets[1]}" if value or brackets != "{}" else "set()"
        if isinstance(value, Checkpoint | Lease) or attrs.has(type(value)):
            return f"{type(value).__name__}({', '.join(self._fields(value))})"
        return repr(value)

    def _fields(self, value: Any) -> list[str]:
        return [
            f"{field.name}={self._shown(getattr(value, field.name))}"
            for field in attrs.fields(type(value))
            if field.default is attrs.NOTHING or getattr(value, field.name) not in (None, {}, field.default)
        ]
