"""JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["print_json", "to_json"]


def to_json(value: Any) -> str:
    """Return a value as JSON in ASCII, so that no terminal and no locale can be in its way."""
    return json.dumps(value, indent=2, allow_nan=False)


def print_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    sys.stdout.write(to_json(value) + "\n")
