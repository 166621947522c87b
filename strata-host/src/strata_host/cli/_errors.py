"""From a store's errors to the command's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from strata_core.errors import InvalidInputError, PluginError, StrataError
from strata_host.cli._text import argument

__all__ = ["CommandError", "opening", "querying"]

_PARAMETERS: Final = {
    "thread_id": "ID",
    "limit": "'--limit'",
    "cursor": "'--cursor'",
    "metadata": "'--meta'",
    "graph_id": "'--graph'",
    "graph_version": "'--graph'",
    "blobs": "'--blobs'",
    "offload": "'--blobs'",
    "url": "'--storage'",
    "store": "'--storage'",
}


class CommandError(click.ClickException):
    """The command cannot give what it was asked for; exit code 1."""

    exit_code = 1


@contextmanager
def opening(storage: str = "'--storage'", blobs: str = "'--blobs'") -> Iterator[None]:
    """Tell errors of opening a store as errors of the options that named it: `storage` and `blobs`.

    Raises:
        click.UsageError: No installed plugin serves the URL, it is malformed, or its file is not there; exit code 2.
        CommandError: The storage is there but cannot be opened; exit code 1.
    """
    try:
        yield
    except InvalidInputError as error:
        named = {"blobs": blobs, "offload": blobs, "url": storage}
        raise click.BadParameter(error.problem, param_hint=named.get(_root(error), storage)) from error
    except PluginError as error:
        # Nobody at fault means that nobody serves what was asked for.
        raise (CommandError if error.distributions else click.UsageError)(str(error)) from error
    except StrataError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise click.BadParameter(str(error), param_hint=storage) from error
        raise CommandError(f"cannot open the storage: {error}") from error


@contextmanager
def querying() -> Iterator[None]:
    """Tell errors of a query as the command's errors.

    Raises:
        click.BadParameter: An argument breaks a rule of the store; exit code 2.
        CommandError: The query failed; exit code 1.
    """
    try:
        yield
    except InvalidInputError as error:
        hint = _PARAMETERS.get(_root(error), error.argument)
        raise click.BadParameter(error.problem, param_hint=hint) from error
    except StrataError as error:
        raise CommandError(f"query failed: {error}{_way_on(error)}") from error


def _way_on(error: StrataError) -> str:
    """Tell how a listing goes on that met a thread which cannot be read."""
    cursor = getattr(error, "next_cursor", None)
    if cursor is None:
        return ""
    return f"; the threads behind it: --cursor {argument(cursor)}; those before it: fewer a page, with --limit"


def _root(error: InvalidInputError) -> str:
    return error.argument.split(".", 1)[0].split("[", 1)[0]
