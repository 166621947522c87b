"""The store of tests with several processes."""

from __future__ import annotations

import os

if os.environ.get("STRATA_TEST_STORE", "memory://") == "memory://":  # only this process can see it
    collect_ignore_glob = ["test_*.py"]
