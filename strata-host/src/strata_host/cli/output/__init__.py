"""How the command writes: plain text into a pipe, colour and width on a terminal, JSON when asked."""

from strata_host.cli.output._json import print_json, to_json
from strata_host.cli.output._output import Output, output
from strata_host.cli.output._span import Line, Role, Span

__all__ = ["Line", "Output", "Role", "Span", "output", "print_json", "to_json"]
