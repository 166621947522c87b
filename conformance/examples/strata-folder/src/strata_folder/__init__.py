"""Keeps the threads of Strata as files in a folder that several processes may share."""

from strata_folder._backend import FolderBackend

__all__ = ["FolderBackend"]
