"""The definition that a command reads: a file, or stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from strata_host.cli._errors import CommandError
from strata_host.cli._text import phrase

__all__ = ["definition_argument", "read_definition"]

_MAX_BYTES: Final = 64 << 20
_STDIN: Final = "-"

definition_argument: Final = click.argument("file", metavar="FILE")
"""The definition of a command, to be read by `read_definition`."""


def read_definition(file: str) -> bytes:
    """Return the bytes of a file; ``-`` is stdin.

    Raises:
        click.BadParameter: There is no such file; exit code 2.
        CommandError: It cannot be read, or is too large to be meant; exit code 1.
    """
    try:
        if file == _STDIN:
            if sys.stdin is None:
                raise CommandError("cannot read stdin: it is closed")
            content: bytes = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                content = stream.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise click.BadParameter(f"{file!r} does not exist{_hint(file)}", param_hint="FILE") from error
    except IsADirectoryError as error:
        raise click.BadParameter(f"{file!r} is a folder, not a file", param_hint="FILE") from error
    except ValueError as error:  # a NUL in the name
        raise click.BadParameter(f"{file!r} is no name of a file: {error}", param_hint="FILE") from error
    except OSError as error:
        raise CommandError(f"cannot read {phrase(file)}: {error.strerror or error}") from error
    if len(content) > _MAX_BYTES:
        raise CommandError(f"cannot read {phrase(file)}: it has more than {_MAX_BYTES >> 20} MiB")
    return content


def _hint(file: str) -> str:
    if ":" not in file:
        return ""
    return "; no code is imported here: write the JSON of graph.definition() to a file, or pipe it to '-'"
