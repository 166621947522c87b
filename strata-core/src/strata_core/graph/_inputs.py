"""The checks of what a call on a graph is given."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Final

from strata_core._validation import check_moment, shown
from strata_core.errors import InvalidInputError
from strata_core.graph._cancellation import CancellationToken
from strata_core.records import Revision

__all__ = ["check_expected", "check_if_exists", "check_limits", "check_store"]

_METHODS: Final = (
    "save",
    "save_if_latest",
    "save_under_lease",
    "load",
    "acquire_lease",
    "renew_lease",
    "release_lease",
)


def check_store(store: object) -> None:
    """Refuse what is no checkpoint store."""
    if all(callable(getattr(store, method, None)) for method in _METHODS):
        return
    if hasattr(store, "__aenter__"):
        raise InvalidInputError("store", "is not open: enter it with 'async with ... as store'")
    hint = "; open it with 'async with open_store(...) as store'" if isinstance(store, str | os.PathLike) else ""
    raise InvalidInputError("store", f"must be a CheckpointStore, not {type(store).__name__}{hint}")


def check_if_exists(if_exists: object) -> bool:
    """Return whether a run must be the first of its thread."""
    if if_exists not in ("append", "error"):
        raise InvalidInputError("if_exists", f"must be 'append' or 'error', not {shown(if_exists)}")
    return if_exists == "error"


def check_expected(expected: object) -> None:
    """Refuse what names no checkpoint; None names any."""
    if expected is None or isinstance(expected, Revision):
        return
    hint = "; Revision.parse reads its text" if isinstance(expected, str) else ""
    raise InvalidInputError("expected", f"must be a Revision or None, not {type(expected).__name__}{hint}")


def check_limits(deadline: object, cancellation: object) -> None:
    """Refuse what cannot stop a run; None stops none."""
    if deadline is not None:
        _check_deadline(deadline)
    if cancellation is not None:
        _check_cancellation(cancellation)


def _check_deadline(deadline: object) -> None:
    """Refuse what is neither an aware datetime nor a timedelta."""
    if isinstance(deadline, datetime):
        check_moment(deadline, "deadline")
    elif not isinstance(deadline, timedelta):
        raise InvalidInputError("deadline", f"must be an aware datetime or a timedelta, not {type(deadline).__name__}")


def _check_cancellation(cancellation: object) -> None:
    """Refuse what is no cancellation token."""
    if not isinstance(cancellation, CancellationToken):
        raise InvalidInputError("cancellation", f"must be a CancellationToken, not {type(cancellation).__name__}")
