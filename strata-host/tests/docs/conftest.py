"""The documents of the repository; these tests run from a checkout only."""

from pathlib import Path

collect_ignore_glob = [] if (Path(__file__).resolve().parents[3] / "tox.ini").is_file() else ["test_*.py"]
