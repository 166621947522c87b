"""Definitions of graphs: JSON documents that describe a graph without its code, to be checked, shown and drawn.

`CompiledGraph.definition` makes one.  Its format is ``schema/graph.schema.json`` of the repository, which is in this
package as ``strata_core/_schema/graph.schema.json``.  Nothing here runs anything of a graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strata_core.errors import GraphValidationError
from strata_core.graph._definition import DEFINITION_VERSION
from strata_core.graph._definition_reader import find_definition_problems
from strata_core.graph._definition_text import parse_definition
from strata_core.graph._mermaid import draw
from strata_core.graph._mermaid_text import duration_text
from strata_core.graph._problems import GraphProblem

__all__ = ["DEFINITION_VERSION", "check_definition", "duration_text", "load_definition", "to_mermaid"]


def check_definition(definition: object) -> list[GraphProblem]:
    """Return everything that is wrong with a definition: its shape, then what `StateGraph.compile` would refuse.

    The checks are those of `compile`; only what lies in functions and state types cannot be seen in a definition.
    Problems of a graph inside carry its `path`.

    Args:
        definition: A JSON value: what `CompiledGraph.definition` returns, or ``json.load`` has read.

    Returns:
        The problems, of the outermost graph first; empty for a definition of a graph that compiles.
    """
    return find_definition_problems(definition)


def load_definition(text: bytes | str) -> dict[str, Any]:
    """Return the definition that a JSON text holds.

    Args:
        text: The text; bytes are UTF-8, also with a byte order mark.

    Raises:
        GraphValidationError: It is no JSON, has a key twice, or is not valid; `problems` holds every problem.
    """
    value, problems = parse_definition(text)
    if value is not None or not problems:
        problems = [*problems, *find_definition_problems(value)]
    if problems:
        raise GraphValidationError(problems)
    found: dict[str, Any] = value
    return found


def to_mermaid(definition: Mapping[str, Any]) -> str:
    """Return a Mermaid flowchart of a definition, as `CompiledGraph.to_mermaid` does of its own.

    Raises:
        GraphValidationError: The definition is not valid.
    """
    problems = find_definition_problems(definition)
    if problems:
        raise GraphValidationError(problems)
    return draw(definition)
