"""The golden vectors of the normative folder; these tests run from a checkout only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).resolve().parents[3] / "schema" / "vectors"
collect_ignore = [] if VECTORS.is_dir() else ["test_vectors.py"]


def _vectors(name: str) -> list[dict[str, Any]]:
    loaded = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    vectors: list[dict[str, Any]] = loaded["vectors"]
    return vectors


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each golden vector of the kind that it names as its argument."""
    kinds = {
        "record": lambda: _vectors("records"),
        "chain": lambda: _vectors("rows"),
        "written_chain": lambda: [vector for vector in _vectors("rows") if "writer" in vector],
        "false_record": lambda: [vector for vector in _vectors("invalid") if "record" in vector],
        "false_chain": lambda: [vector for vector in _vectors("invalid") if "rows" in vector],
    }
    for argument in kinds.keys() & set(metafunc.fixturenames):
        vectors = kinds[argument]()
        metafunc.parametrize(argument, vectors, ids=[vector["name"] for vector in vectors])
