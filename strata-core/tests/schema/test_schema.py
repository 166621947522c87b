"""The JSON Schema itself: it is valid, described, closed, explained by the README, and shipped unchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from strata_core.records import CheckpointStatus, WaitKind


def _objects(node: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Walk every subschema that lists properties."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict) and node.get("type") == "object":
            yield path, node
        for key, child in node.items():
            yield from _objects(child, f"{path}/{key}")
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _objects(child, f"{path}/{index}")


def test_it_is_a_valid_schema_of_draft_2020_12(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)

    assert "https://json-schema.org/draft/2020-12/schema" == schema["$schema"]


def test_every_fixed_object_refuses_other_keys(schema: dict[str, Any]) -> None:
    open_ones = [path for path, node in _objects(schema) if node.get("additionalProperties") is not False]

    assert [] == open_ones


def test_every_property_of_the_record_is_described(schema: dict[str, Any]) -> None:
    silent = [name for name, node in schema["properties"].items() if not node.get("description")]
    silent += [name for name, node in schema["$defs"].items() if not node.get("description")]

    assert [] == silent


def test_an_envelope_is_a_record_without_its_state(schema: dict[str, Any]) -> None:
    envelope = schema["$defs"]["envelope"]

    assert set(schema["properties"]) - {"frozen_state"} == set(envelope["properties"])
    assert set(schema["required"]) - {"frozen_state"} == set(envelope["required"])


def test_the_readme_names_every_key(schema: dict[str, Any], schema_folder: Path) -> None:
    readme = (schema_folder / "README.md").read_text(encoding="utf-8")
    names = {name for _, node in _objects(schema) for name in node["properties"]}
    missing = sorted(name for name in names if f"`{name}`" not in readme and f'"{name}":' not in readme)

    assert [] == missing


def test_the_readme_lists_the_keys_of_the_record_in_the_schema_s_order(
    schema: dict[str, Any], schema_folder: Path
) -> None:
    readme = (schema_folder / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("## 1.") : readme.index("## 2.")]

    assert list(schema["properties"]) == re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_the_readme_lists_every_status(schema: dict[str, Any], schema_folder: Path) -> None:
    readme = (schema_folder / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("## 2.") : readme.index("## 3.")]

    assert schema["properties"]["status"]["enum"] == re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_the_clauses_of_the_readme_are_numbered_without_gaps(schema_folder: Path) -> None:
    readme = (schema_folder / "README.md").read_text(encoding="utf-8")
    numbers: dict[str, list[int]] = {}
    for family, number in re.findall(r"^- \*\*([a-z]+)-(\d+)\*\*", readme, re.MULTILINE):
        numbers.setdefault(family, []).append(int(number))

    assert {family: list(range(1, len(found) + 1)) for family, found in numbers.items()} == numbers


def test_the_clauses_that_the_readme_refers_to_exist(schema_folder: Path) -> None:
    readme = (schema_folder / "README.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"\*\*([a-z]+-\d+)\*\*", readme))
    families = {clause.rsplit("-", 1)[0] for clause in defined}
    referred = {ref for ref in re.findall(r"\b([a-z]+-\d+)\b", readme) if ref.rsplit("-", 1)[0] in families}

    assert set() == referred - defined


def test_the_digest_that_the_readme_gives_is_true(schema_folder: Path) -> None:
    blob = b'"' + b"x" * 100_000 + b'"'

    assert 100_002 == len(blob)
    assert f"sha256:{hashlib.sha256(blob).hexdigest()}" in (schema_folder / "README.md").read_text(encoding="utf-8")


def test_statuses_and_kinds_of_wait_are_those_of_the_records(schema: dict[str, Any]) -> None:
    assert [status.value for status in CheckpointStatus] == schema["properties"]["status"]["enum"]
    assert [kind.value for kind in WaitKind] == schema["$defs"]["wait"]["properties"]["kind"]["enum"]


def test_the_copy_that_ships_with_the_package_is_the_same(schema_folder: Path) -> None:
    shipped = resources.files("strata_core") / "_schema" / "checkpoint.schema.json"

    assert (schema_folder / "checkpoint.schema.json").read_bytes() == shipped.read_bytes(), (
        "copy schema/checkpoint.schema.json to strata-core/src/strata_core/_schema/"
    )


@pytest.mark.parametrize("version", ["1.7", "1.07.0", "v1.7.0", "1.7.0 ", "2.0.0", "1.7.0-beta", ""])
def test_a_version_is_three_numbers_and_begins_with_1(schema: dict[str, Any], version: str) -> None:
    pattern = schema["$defs"]["version"]["pattern"]

    assert None is re.search(pattern, version)
