"""How the command ends: one line on stderr, and an exit code that means something."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import click

from strata_host.cli._errors import CommandError
from strata_host.cli._secrets import hide_secrets
from strata_host.cli._text import one_line

__all__ = ["StrataGroup"]

INTERRUPTED = 130


class StrataGroup(click.Group):
    """A command group whose errors are one line each, ``strata: …``, without a traceback.

    Exits with 0; with 1 when something is not found or a query fails; with 2 for wrong usage; with 130 after an
    interrupt.  A reader that goes away (``| head``) is no error.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(StrataGroup, self).main(
                args, prog_name, complete_var, False, windows_expand_args=windows_expand_args, **extra
            )

        if not standalone_mode:
            return run()
        return sys.exit(_exit_code(run, sys.argv[1:] if args is None else args))

    def invoke(self, ctx: click.Context) -> Any:
        # Inside `main`, click answers both of these itself: a stray newline, and exit code 1.
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            ctx.exit(0)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        return result


def _exit_code(run: Callable[[], Any], arguments: Sequence[str]) -> int:
    def complain(message: str) -> None:
        click.echo(f"strata: {one_line(hide_secrets(message, arguments))}", err=True)

    try:
        result = run()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        complain(_usage(error))
        return error.exit_code
    except click.ClickException as error:
        complain(error.format_message())
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except OSError as error:  # stores map theirs, so this is the output, such as a full disk
        _discard_output()
        complain(f"input or output failed: {error.strerror or error}")
        return CommandError.exit_code
    except Exception as error:  # noqa: BLE001  # a defect, ours or a plugin's, is still told in one line
        complain(f"unexpected error: {type(error).__name__}: {error} (STRATA_DEBUG=1 shows the traceback)")
        if os.environ.get("STRATA_DEBUG"):
            click.echo(hide_secrets(traceback.format_exc(), arguments), err=True)
        return CommandError.exit_code
    return result if isinstance(result, int) else 0


def _usage(error: click.UsageError) -> str:
    message = error.format_message().removesuffix(".")
    message = message[:1].lower() + message[1:]
    if isinstance(error, click.NoSuchOption):
        message += _option_hint(error)
    return message if error.ctx is None else f"{message} (see '{error.ctx.command_path} --help')"


def _option_hint(error: click.NoSuchOption) -> str:
    """Say where an option, or an ID that looks like one, has its place."""
    if error.ctx is None:
        return ""
    command, name = error.ctx.command, error.option_name
    if isinstance(command, click.Group):
        return "; it goes after the command" if name in _options_below(command) else ""
    takes_id = any(isinstance(parameter, click.Argument) for parameter in command.params)
    return "; an ID that begins with a dash goes after '--'" if takes_id and not name.startswith("--") else ""


def _options_below(group: click.Group) -> set[str]:
    names: set[str] = set()
    for command in group.commands.values():
        names |= (
            _options_below(command)
            if isinstance(command, click.Group)
            else {name for parameter in command.params for name in parameter.opts}
        )
    return names


def _discard_output() -> None:
    """Point stdout elsewhere, so that flushing it when the interpreter ends does not fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a stdout without a descriptor has nothing left to flush
        return
