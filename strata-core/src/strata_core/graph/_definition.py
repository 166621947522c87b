"""What a compiled graph consists of, as a JSON document: a description, without code and without state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from strata_core.errors import UsageError
from strata_core.graph._handlers import Handler
from strata_core.graph._nodes import Node, Pause
from strata_core.graph._plan import Plan
from strata_core.graph._retry import RetryPolicy
from strata_core.records import WaitKind

__all__ = ["COMPUTED", "DEFINITION_VERSION", "MAX_LEVELS", "define"]

DEFINITION_VERSION: Final = "1.0.0"
"""The newest version of the format that this release reads and writes."""
MAX_LEVELS: Final = 100
"""How deep graphs may be nested in a definition, the outermost one included: parsers of JSON have limits as well."""
COMPUTED: Final = "computed"
"""Stands for what a function tells when the graph runs."""


def define(plan: Plan[Any], level: int = 1) -> dict[str, Any]:
    """Return the definition of a graph, with its children whole.

    Raises:
        UsageError: Graphs are nested in it more than `MAX_LEVELS` deep.
    """
    if level > MAX_LEVELS:
        raise UsageError(f"a definition holds graphs that are nested up to {MAX_LEVELS} deep, and these are deeper")
    nodes = plan.nodes.values()
    flags = {
        "completion_record": plan.completion_record,
        "on_resume": plan.on_resume is not None,
        "on_interrupted": plan.on_interrupted is not None,
    }
    identity = plan.identity
    return {
        "schema_version": DEFINITION_VERSION,
        **({} if identity is None else {"identity": {"id": identity.id, "version": identity.version}}),
        "checkpointing": plan.checkpointing.value,
        **{name: True for name, is_set in flags.items() if is_set},
        "entry": plan.entry.name,
        "nodes": [_node(node, level) for node in nodes],
        "edges": [{"source": node.name, "target": node.next.name} for node in nodes if node.next is not None],
        "conditional_edges": [
            {"source": node.name, "targets": list(node.router.targets)} for node in nodes if node.router is not None
        ],
        "waits": [_wait(node.name, node.pause) for node in nodes if node.pause is not None],
    }


def _node(node: Node, level: int) -> dict[str, Any]:
    body = {"kind": "node"} if node.body is None else node.body.describe(lambda child: define(child, level + 1))
    document = {"name": node.name, **body}
    if node.blocking:
        document["blocking"] = True
    if node.retry is not None:
        document["retry"] = _retry(node.retry)
    if node.fallback is not None:
        document["fallback"] = node.fallback.name
    return document


def _retry(retry: RetryPolicy) -> dict[str, Any]:
    default = RetryPolicy()
    document: dict[str, Any] = {"max_attempts": retry.max_attempts}
    if retry.initial_delay != default.initial_delay:
        document["initial_delay"] = _seconds(retry.initial_delay)
    if retry.multiplier != default.multiplier:
        document["multiplier"] = _number(retry.multiplier)
    if retry.max_delay is not None:
        document["max_delay"] = _seconds(retry.max_delay)
    if retry.jitter != default.jitter:
        document["jitter"] = _number(retry.jitter)
    if not isinstance(retry.retry_on, tuple):
        document["retry_on"] = COMPUTED
    elif retry.retry_on != default.retry_on:
        document["retry_on"] = [_class_name(kind) for kind in retry.retry_on]
    return document


def _class_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _wait(node: str, pause: Pause) -> dict[str, Any]:
    document: dict[str, Any] = {"node": node, "kind": pause.kind.value}
    if pause.event_type is not None:
        document["event_type"] = pause.event_type
    if pause.delay is not None:
        key = "delay" if pause.kind is WaitKind.TIMER else "timeout"
        document[key] = COMPUTED if isinstance(pause.delay, Handler) else _seconds(pause.delay)
    if pause.on_timeout is not None:
        document["on_timeout"] = pause.on_timeout
    if pause.on_reject is not None:
        document["on_reject"] = pause.on_reject.name
    return document


def _seconds(duration: timedelta) -> int | float:
    return _number(duration.total_seconds())


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else float(value)
