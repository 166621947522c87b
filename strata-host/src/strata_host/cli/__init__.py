"""The command `strata`: threads, checkpoints, graphs and plugins, read-only."""

from strata_host.cli._main import strata

__all__ = ["strata"]
