"""`strata graph`: definitions of graphs, checked and drawn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from strata_core.errors import GraphValidationError
from strata_host.cli._definition_file import definition_argument, read_definition
from strata_host.cli._errors import CommandError
from strata_host.cli._graph_views import NODE_HEADER, PROBLEM_HEADER, count_nodes, graph_fields, node_rows, problem_row
from strata_host.cli._source import json_option
from strata_host.cli._text import argument, phrase
from strata_host.cli.output import Role, Span, output, print_json

if TYPE_CHECKING:
    from strata_core.graph import GraphProblem

__all__ = ["graph"]


@click.group()
def graph() -> None:
    """What a graph consists of, and whether it is valid.

    Both are told by its definition, which is the JSON of `CompiledGraph.definition()`.  No code is imported or run.
    """


@graph.command()
@definition_argument
@json_option
@click.pass_context
def validate(context: click.Context, file: str, as_json: bool) -> None:
    """Tell all that is wrong with the definition in FILE.

    '-' is stdin.  The checks are those of compiling a graph.  Exits with 1 when there is a problem.
    """
    from strata_core.graph.definitions import load_definition

    problems: tuple[GraphProblem, ...] = ()
    try:
        definition = load_definition(read_definition(file))
    except GraphValidationError as error:
        problems = error.problems
    if as_json:
        print_json({"valid": not problems, "problems": [_json(problem) for problem in problems]})
    elif problems:
        output().table(PROBLEM_HEADER, [problem_row(problem) for problem in problems])
    else:
        output().line([Span("valid", Role.ADDED), Span(f": {count_nodes(definition)}")])
    context.exit(1 if problems else 0)


@graph.command()
@definition_argument
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Write a Mermaid flowchart.")
@json_option
def show(file: str, as_mermaid: bool, as_json: bool) -> None:
    """Show the graph whose definition is in FILE.

    Its nodes, their ways on, and its waits; with --json the definition itself.  '-' is stdin.
    """
    if as_mermaid and as_json:
        raise click.UsageError("--mermaid and --json exclude each other", click.get_current_context())
    definition = _load(file)
    if as_json:
        print_json(definition)
    elif as_mermaid:
        _write_mermaid(definition)
    else:
        out = output()
        out.fields(list(graph_fields(definition)))
        out.line([])
        out.table(NODE_HEADER, list(node_rows(definition)))


def _load(file: str) -> dict[str, Any]:
    from strata_core.graph.definitions import load_definition

    try:
        return load_definition(read_definition(file))
    except GraphValidationError as error:
        first, *more = error.problems
        others = f" and {len(more)} more" if more else ""
        see = "" if file == "-" else f"; see 'strata graph validate {argument(file)}'"
        raise CommandError(f"{phrase(file)} holds no valid definition: {first}{others}{see}") from error


def _write_mermaid(definition: dict[str, Any]) -> None:
    from strata_core.graph.definitions import to_mermaid

    output()  # makes stdout take what its encoding has not
    sys.stdout.write(to_mermaid(definition))


def _json(problem: GraphProblem) -> dict[str, Any]:
    return {"code": problem.code.value, "path": list(problem.path), "node": problem.node, "text": problem.text}
