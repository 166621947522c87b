"""What stands in a place of the file system, so that a test sees what opening a store leaves there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["files"]


def files(folder: Path, paths: Iterable[Path] | None = None) -> dict[str, object]:
    """Return every file and folder below `paths`, by its path from `folder`, with a digest of what a file holds.

    Args:
        folder: Where names start.
        paths: Where to look; all of `folder` by default.
    """
    found: dict[str, object] = {}
    for path in folder.iterdir() if paths is None else paths:
        name = str(path.relative_to(folder))
        if path.is_dir():
            found |= {name: "a folder", **{f"{name}/{inner}": what for inner, what in files(path).items()}}
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
