"""Keeps the threads of Strata as files in a folder that several processes may share."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strata_folder._backend import FolderBackend

__all__ = ["FolderBackend"]


def __getattr__(name: str) -> Any:
    """Import the backend when it is asked for: whoever lists plugins imports this module too."""
    if name == "FolderBackend":
        from strata_folder._backend import FolderBackend

        return FolderBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
