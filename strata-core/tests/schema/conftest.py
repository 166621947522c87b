"""The normative folder at the root of the repository; these tests run from a checkout only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCHEMA = Path(__file__).resolve().parents[3] / "schema"
collect_ignore_glob = [] if SCHEMA.is_dir() else ["test_*.py"]


@pytest.fixture(scope="session")
def schema_folder() -> Path:
    return SCHEMA


@pytest.fixture(scope="session")
def schema(schema_folder: Path) -> dict[str, Any]:
    """The JSON Schema of a record."""
    loaded: dict[str, Any] = json.loads((schema_folder / "checkpoint.schema.json").read_text(encoding="utf-8"))
    return loaded


def _vectors(name: str) -> list[dict[str, Any]]:
    loaded = json.loads((SCHEMA / "vectors" / f"{name}.json").read_text(encoding="utf-8"))
    vectors: list[dict[str, Any]] = loaded["vectors"]
    return vectors


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each golden vector of the kind that it names as its argument."""
    kinds = {
        "records_vector": lambda: _vectors("records"),
        "rows_vector": lambda: _vectors("rows"),
        "invalid_vector": lambda: _vectors("invalid"),
        "graph_vector": lambda: _vectors("graphs"),
        "invalid_record": lambda: [vector for vector in _vectors("invalid") if "record" in vector],
    }
    for argument in kinds.keys() & set(metafunc.fixturenames):
        vectors = kinds[argument]()
        metafunc.parametrize(argument, vectors, ids=[vector["name"] for vector in vectors])
