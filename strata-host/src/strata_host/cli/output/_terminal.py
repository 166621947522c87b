"""Colour and width, by rich; imported only when stdout is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from strata_host.cli.output._span import Line, Role

__all__ = ["TerminalOutput"]

_STYLES: Final[dict[Role, str]] = {
    Role.TEXT: "",
    Role.LABEL: "bold",
    Role.THREAD: "bold cyan",
    Role.NODE: "magenta",
    Role.TIME: "dim",
    Role.ADDED: "green",
    Role.REMOVED: "red",
    Role.CHANGED: "yellow",
    Role.INTERRUPTED: "yellow",
    Role.FAILED: "bold red",
    Role.CANCELLED: "red",
    Role.RUNNING: "blue",
    Role.COMPLETED: "green",
    Role.ENDED: "dim",
    Role.RESUMED: "cyan",
}


_GAP: Final = 2
"""How many columns stand between two cells."""


class TerminalOutput:
    """Writes for the terminal that stdout is.

    Args:
        colour: False writes no styles at all, only layout.
    """

    def __init__(self, *, colour: bool) -> None:
        self._console = Console(
            file=sys.stdout,
            force_terminal=True,
            color_system="auto" if colour else None,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def line(self, spans: Line) -> None:
        self._console.print(_text(spans), soft_wrap=True)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Line]]) -> None:
        widths = [
            max(map(cell_len, column)) for column in zip(header, *(map(_plain, row) for row in rows), strict=True)
        ]
        if sum(widths) + _GAP * (len(widths) - 1) > self._console.width:
            self._records(header, rows)
            return
        table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
        for name in header:
            table.add_column(name, no_wrap=True)
        for row in rows:
            table.add_row(*map(_text, row))
        self._console.print(table)

    def _records(self, header: Sequence[str], rows: Sequence[Sequence[Line]]) -> None:
        """Write one cell a line, since the terminal is too narrow for the table without breaking words."""
        for number, row in enumerate(rows):
            if number:
                self._console.print()
            self.fields([(name.lower(), cell) for name, cell in zip(header, row, strict=True)])

    def fields(self, pairs: Sequence[tuple[str, Line]]) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, spans in pairs:
            grid.add_row(f"{label}:" if label else "", _text(spans))
        self._console.print(grid)

    def document(self, text: str) -> None:
        shown = Text(text)
        JSONHighlighter().highlight(shown)
        self._console.print(shown, soft_wrap=True)


def _plain(spans: Line) -> str:
    return "".join(span.text for span in spans)


def _text(spans: Line) -> Text:
    return Text.assemble(*((span.text, _STYLES[span.role]) for span in spans))
