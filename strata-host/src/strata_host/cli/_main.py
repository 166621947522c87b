"""The root of the command."""

from __future__ import annotations

import click

from strata_host.cli._blobs import blobs
from strata_host.cli._checkpoint import checkpoint
from strata_host.cli._copy import copy
from strata_host.cli._graph import graph
from strata_host.cli._group import StrataGroup
from strata_host.cli._plugins import plugins
from strata_host.cli._thread import thread

__all__ = ["strata"]


@click.group(cls=StrataGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="strata-host", message="%(prog)s %(version)s")
def strata() -> None:
    """Look into threads, checkpoints and definitions of graphs, and copy threads between Strata stores.

    Only copy writes, and to its target only.  Nothing else writes to a store or creates a file; nothing runs a node.

    Exit codes: 0 for success, 1 when something is not found, not valid or cannot be read, 2 for wrong usage,
    130 after an interrupt.
    """


strata.add_command(thread)
strata.add_command(checkpoint)
strata.add_command(graph)
strata.add_command(blobs)
strata.add_command(copy)
strata.add_command(plugins)
