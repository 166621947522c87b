"""The two ways to write for people."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from strata_host.cli.output._plain import PlainOutput
from strata_host.cli.output._span import Line

__all__ = ["Output", "output"]


class Output(Protocol):
    """Writes to stdout for people."""

    def line(self, spans: Line) -> None:
        """Write one line, never broken or cut."""
        ...

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Line]]) -> None:
        """Write rows under a header, nothing cut."""
        ...

    def fields(self, pairs: Sequence[tuple[str, Line]]) -> None:
        """Write labels and their values, one below the other."""
        ...

    def document(self, text: str) -> None:
        """Write JSON text."""
        ...


def output() -> Output:
    """Return what fits stdout: colour and width on a terminal that has them, else plain and stable text."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale that cannot write an ID still gets its line
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from strata_host.cli.output._terminal import TerminalOutput

        return TerminalOutput(colour=not os.environ.get("NO_COLOR"))
    return PlainOutput()
