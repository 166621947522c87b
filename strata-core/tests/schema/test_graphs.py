"""The format of graph definitions: its schema, its page and its vectors, and that this release keeps to them."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from strata_core.errors import GraphValidationError
from strata_core.graph import CheckpointPolicy, GraphProblem
from strata_core.graph.definitions import DEFINITION_VERSION, load_definition
from strata_core.records import WaitKind

SHAPE = {"STRATA_ERR_INVALID_DEFINITION", "STRATA_ERR_DEFINITION_VERSION"}


@pytest.fixture(scope="module")
def graph_schema(schema_folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((schema_folder / "graph.schema.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def page(schema_folder: Path) -> str:
    return (schema_folder / "GRAPHS.md").read_text(encoding="utf-8")


def test_it_is_a_valid_schema_that_is_of_the_version_that_is_written(graph_schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(graph_schema)

    assert f"urn:strata:graph:{DEFINITION_VERSION}" == graph_schema["$id"]
    assert re.search(graph_schema["properties"]["schema_version"]["pattern"], DEFINITION_VERSION)


def test_every_object_is_closed_and_described(graph_schema: dict[str, Any]) -> None:
    for name, node in graph_schema["$defs"].items():
        assert node["description"], name
        assert node.get("properties") is None or "oneOf" in node or node["additionalProperties"] is False, name
    assert all(node["description"] for node in graph_schema["properties"].values())


def test_policies_and_kinds_of_wait_are_those_of_the_engine(graph_schema: dict[str, Any]) -> None:
    assert [policy.value for policy in CheckpointPolicy] == graph_schema["properties"]["checkpointing"]["enum"]
    assert [kind.value for kind in WaitKind] == graph_schema["$defs"]["wait"]["properties"]["kind"]["enum"]


def test_the_page_lists_the_keys_of_the_document_and_names_all_others(graph_schema: dict[str, Any], page: str) -> None:
    section = page[page.index("## 1.") : page.index("## 2.")]
    keys = {key for node in graph_schema["$defs"].values() for key in node.get("properties", ())}

    assert list(graph_schema["properties"]) == re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert set() == {key for key in keys if f"`{key}`" not in page}


def test_the_copy_that_ships_with_the_package_is_the_same(schema_folder: Path) -> None:
    shipped = resources.files("strata_core") / "_schema" / "graph.schema.json"

    assert (schema_folder / "graph.schema.json").read_bytes() == shipped.read_bytes(), (
        "copy schema/graph.schema.json to strata-core/src/strata_core/_schema/"
    )


def _found(problems: tuple[GraphProblem, ...]) -> list[dict[str, Any]]:
    return [{"code": each.code.value, "path": list(each.path), "node": each.node} for each in problems]


def test_a_reader_finds_the_problems_of_each_vector_and_no_others(graph_vector: dict[str, Any]) -> None:
    problems: tuple[GraphProblem, ...] = ()
    try:
        load_definition(graph_vector["text"])
    except GraphValidationError as error:
        problems = error.problems

    assert graph_vector["problems"] == _found(problems)


def test_the_schema_refuses_the_shapes_that_a_reader_refuses(
    graph_vector: dict[str, Any], graph_schema: dict[str, Any]
) -> None:
    codes = {problem["code"] for problem in graph_vector["problems"]}
    if "STRATA_ERR_MALFORMED_DEFINITION" not in codes:
        is_valid = Draft202012Validator(graph_schema).is_valid(json.loads(graph_vector["text"]))

        assert is_valid == (not codes & SHAPE)


def test_texts_are_compact_and_keys_in_the_schema_s_order(
    graph_vector: dict[str, Any], graph_schema: dict[str, Any]
) -> None:
    if not graph_vector["problems"] and graph_vector["name"] != "nulls":
        document = json.loads(graph_vector["text"])

        assert json.dumps(document, ensure_ascii=False, separators=(",", ":")) == graph_vector["text"]
        assert [key for key in graph_schema["properties"] if key in document] == list(document)
