"""The command `strata`, also as ``python -m strata_host``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the command `strata` with the process's arguments, and exit.

    Raises:
        SystemExit: Always, with the exit code: 0, 1 (not found, invalid, unreadable), 2 (usage) or 130 (interrupted).
    """
    if not os.environ.get("STRATA_DEBUG"):
        # What goes wrong is told in one line; a library's warning would be another, and nobody vouches for its text.
        logging.getLogger().addHandler(logging.NullHandler())
    if sys.stdout is None:  # closed by the caller, as in `strata … >&-`
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  # for as long as the process lives
    try:
        from strata_host.cli import strata
    except KeyboardInterrupt:  # an impatient Ctrl-C during the imports is no traceback either
        sys.exit(130)
    strata(prog_name="strata")


if __name__ == "__main__":
    main()
