"""The repository around this distribution; these tests run from a checkout only."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
collect_ignore_glob = [] if (ROOT / "tox.ini").is_file() else ["test_*.py"]
LEFT_BEHIND = {".git", ".venv", ".tox", "dist", "build"}


def _listed() -> list[Path]:
    """Every file that git knows or would add; without git, all but what tools leave behind."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [
                name
                for name in folders
                if name not in LEFT_BEHIND and not name.endswith(("_cache", "__pycache__", ".egg-info", ".hypothesis"))
            ]
            names += [str(Path(folder, file).relative_to(ROOT)) for file in files]
    return [ROOT / name for name in sorted(names) if name and (ROOT / name).is_file()]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """The files of the repository."""
    return _listed()


@pytest.fixture(scope="session")
def distributions() -> list[Path]:
    """The folders of the distributions."""
    return sorted(path.parent for path in ROOT.glob("*/pyproject.toml"))
