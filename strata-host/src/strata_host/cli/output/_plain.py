"""Plain text: the same bytes wherever it goes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from strata_host.cli.output._span import Line

__all__ = ["PlainOutput"]


class PlainOutput:
    """Writes without colour, and without regard to any width."""

    def line(self, spans: Line) -> None:
        _write(_text(spans))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Line]]) -> None:
        cells = [list(header), *([_text(cell) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            _write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def fields(self, pairs: Sequence[tuple[str, Line]]) -> None:
        width = max(len(label) for label, _ in pairs) + 1
        for label, spans in pairs:
            _write(f"{label + ':' if label else '':<{width}} {_text(spans)}")

    def document(self, text: str) -> None:
        _write(text)


def _text(spans: Line) -> str:
    return "".join(span.text for span in spans)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
