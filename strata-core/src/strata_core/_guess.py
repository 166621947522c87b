"""What somebody may have meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, names: Iterable[object]) -> str:
    """Return `` (did you mean 'amount'?)``, or nothing when no name comes near."""
    if not isinstance(name, str):
        return ""
    from difflib import get_close_matches

    near = get_close_matches(name, [known for known in names if isinstance(known, str)], 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
