"""From a definition to what `find_problems` checks, and to all that is wrong with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from strata_core._validation import check_thread_id
from strata_core.errors import InvalidInputError
from strata_core.graph._definition import COMPUTED, DEFINITION_VERSION, MAX_LEVELS
from strata_core.graph._definition_members import Members, Notes
from strata_core.graph._drafts import BodyDraft, EdgeDraft, NodeDraft, RouteDraft, WaitDraft
from strata_core.graph._group import GroupDraft
from strata_core.graph._map import MapDraft
from strata_core.graph._outline import Outline, declared
from strata_core.graph._policy import CheckpointPolicy
from strata_core.graph._problems import GraphProblem, ProblemCode
from strata_core.graph._retry import RetryPolicy
from strata_core.graph._subgraph import SubgraphDraft
from strata_core.graph._validate import find_problems
from strata_core.records import WaitKind

__all__ = ["find_definition_problems"]

_VERSION: Final = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)
_NEWEST: Final = (1, 0)
_LONGEST_NAME: Final = 512
"""Characters of a name in a path: a longer one is refused, and must not stand whole before every problem behind it."""


def find_definition_problems(value: object) -> list[GraphProblem]:
    """Return everything that is wrong with a definition, of the outermost graph first.

    Where the shape of a graph is damaged, what `find_problems` would say of that graph is left out: it would follow
    from the damage.  A key that nobody knows damages nothing.
    """
    reader = _Reader()
    reader.graph(value, "", (), 1)
    return [problem for found in reader.found for problem in found()]


class _Reader:
    """Reads a definition and the definitions in it.

    `found` gives the problems of each graph, in the order in which the graphs stand in the document.
    """

    def __init__(self) -> None:
        self.found: list[Callable[[], Iterator[GraphProblem]]] = []

    def graph(self, value: object, where: str, path: tuple[str, ...], level: int) -> Outline:
        """Read one graph."""
        notes = Notes(path)
        members = Members(notes, where, value)
        outline = Outline(False, False)
        self.found.append(lambda: _problems(notes, outline))
        if not members.is_object or not _is_readable(notes, members):
            notes.is_whole = False
        elif level > MAX_LEVELS:
            notes.shape(where, f"graphs are nested more than {MAX_LEVELS} deep", None)
        else:
            outline.on_resume = members.flag("on_resume") or None
            outline.on_interrupted = members.flag("on_interrupted") or None
            _Graph(self, notes, members, outline, level).read()
        return outline


def _problems(notes: Notes, outline: Outline) -> Iterator[GraphProblem]:
    yield from notes.problems
    if notes.is_whole:
        for problem in find_problems(outline.draft):
            yield GraphProblem(problem.code, problem.node, problem.text, notes.path)


def _is_readable(notes: Notes, members: Members) -> bool:
    """Tell whether the rest of a document has a meaning that is known here."""
    version = members.text("schema_version", required=True)
    if version is None:
        return False
    match = _VERSION.fullmatch(version)
    if match is None or (numbers := tuple(map(int, match.groups()[:2]))) < _NEWEST:
        notes.shape(members.path("schema_version"), f"{version!r} is no version of a definition", None)
        return False
    if numbers > _NEWEST:
        text = (
            f"{members.path('schema_version')}: {version} is newer than {DEFINITION_VERSION}; upgrade strata-core to "
            "read it"
        )
        notes.add(GraphProblem(ProblemCode.DEFINITION_VERSION, None, text))
        return False
    return True


class _Graph:
    """Reads the parts of one graph into its outline."""

    def __init__(self, reader: _Reader, notes: Notes, members: Members, outline: Outline, level: int) -> None:
        self._reader = reader
        self._notes = notes
        self._members = members
        self._outline = outline
        self._level = level

    def read(self) -> None:
        members, draft = self._members, self._outline.draft
        self._identity()
        members.choice("checkpointing", CheckpointPolicy)
        members.flag("completion_record")
        entry = members.text("entry", required=True)
        if entry is not None:
            draft.entries.append(entry)
        for node in self._parts("nodes"):
            self._node(node)
        for edge in self._parts("edges"):
            draft.edges.append(EdgeDraft(edge.text("source", required=True), edge.text("target", required=True)))
            edge.close()
        for route in self._parts("conditional_edges"):
            source, targets = route.text("source", required=True), route.texts("targets", required=True)
            draft.routes.append(RouteDraft(source, declared, targets))
            route.close()
        for wait in self._parts("waits"):
            draft.waits.append(_wait(wait))
            wait.close()
        members.close()

    def _parts(self, key: str) -> list[Members]:
        where, about = self._members.path(key), {"nodes": "name", "waits": "node"}.get(key, "source")
        parts = []
        for number, value in enumerate(self._members.array(key, required=True)):
            name = value.get(about) if isinstance(value, dict) else None
            node = name if isinstance(name, str) else None
            parts.append(Members(self._notes, f"{where}[{number}]", value, node))
        return parts

    def _identity(self) -> None:
        value = self._members.any("identity")
        if value is None:
            return
        identity = Members(self._notes, self._members.path("identity"), value)
        for key in ("id", "version"):
            text = identity.text(key, required=True)
            try:
                if text is not None:
                    check_thread_id(text, identity.path(key))
            except InvalidInputError as error:
                self._notes.shape(error.argument, error.problem, None, is_damage=False)
        identity.close()

    def _node(self, members: Members) -> None:
        name = members.text("name", required=True)
        kind = members.choice("kind", ("node", "subgraph", "group", "map"))
        fallback = members.text("fallback")
        retry = self._retry(members)
        blocking = kind == "node" and members.flag("blocking")
        body = None if name is None or kind is None else self._body(members, name, kind)
        handler = declared if kind == "node" else None
        self._outline.draft.nodes.append(NodeDraft(name, handler, retry, fallback, blocking, body))
        if kind is not None:
            members.close()

    def _body(self, members: Members, name: str, kind: str) -> BodyDraft | None:
        if kind == "subgraph":
            child = self._child(members, name)
            self._outline.subgraphs[name] = child
            return SubgraphDraft(child, declared, declared)
        if kind == "map":
            limit = members.integer("max_concurrency")
            return MapDraft(self._child(members, name), declared, declared, limit)
        if kind == "group":
            return self._group(members, name)
        return None

    def _child(self, members: Members, *names: str) -> Outline:
        path = (*self._notes.path, *(name[:_LONGEST_NAME] for name in names))
        return self._reader.graph(members.any("child", required=True), members.path("child"), path, self._level + 1)

    def _group(self, members: Members, name: str) -> BodyDraft:
        branches: dict[Any, Any] = {}
        blocking = []
        names: Counter[str] = Counter()
        limit = members.integer("max_concurrency")
        for number, value in enumerate(members.array("branches", required=True)):
            branch = Members(self._notes, f"{members.path('branches')}[{number}]", value, name)
            key = branch.text("name", required=True)
            if branch.flag("blocking"):
                blocking.append(key)
            is_graph = branch.any("child") is not None
            branches[key] = self._child(branch, name, key or "") if is_graph else declared
            branch.close()
            if key is not None:
                names[key] += 1
        for key, count in names.items():
            if count > 1:
                text = f"{count} branches of node {name!r} have the name {key!r}"
                self._notes.add(GraphProblem(ProblemCode.INVALID_BRANCH, name, text))
        return GroupDraft(branches, declared, limit, blocking, object)

    def _retry(self, node: Members) -> RetryPolicy | None:
        value = node.any("retry")
        if value is None:
            return None
        members = Members(self._notes, node.path("retry"), value, node.node)
        given: dict[str, Any] = {
            "max_attempts": members.integer("max_attempts", required=True),
            "initial_delay": _duration(members.number("initial_delay")),
            "multiplier": members.number("multiplier"),
            "max_delay": _duration(members.number("max_delay")),
            "jitter": members.number("jitter"),
        }
        if members.any("retry_on") != COMPUTED:
            members.texts("retry_on")
        members.close()
        try:
            return RetryPolicy(**{key: value for key, value in given.items() if value is not None})
        except InvalidInputError as error:
            text = f"retry of node {node.node!r}: {error}"
            self._notes.add(GraphProblem(ProblemCode.INVALID_RETRY, node.node, text))
            return None


def _wait(members: Members) -> WaitDraft:
    node = members.text("node", required=True)
    kind = members.choice("kind", WaitKind)
    if kind is None:
        members.skip("event_type", "delay", "timeout", "on_timeout", "on_reject")
        return WaitDraft(WaitKind.PERSON, node, None)
    if kind == WaitKind.TIMER:
        delay: Any = declared
        if members.any("delay", required=True) != COMPUTED:
            delay = _duration(members.number("delay"))
        return WaitDraft(WaitKind.TIMER, node, delay)
    timeout = _duration(members.number("timeout"))
    on_timeout = members.text("on_timeout")
    if kind == WaitKind.EVENT:
        event_type = members.text("event_type", required=True)
        return WaitDraft(WaitKind.EVENT, node, timeout, on_timeout, event_type=event_type)
    return WaitDraft(WaitKind.PERSON, node, timeout, on_timeout, members.text("on_reject"))


def _duration(seconds: float | None) -> timedelta | None:
    """Return so many seconds; what is longer than any timedelta as the longest one."""
    if seconds is None:
        return None
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):  # also for what is no number, which JSON does not have
        return timedelta.max if seconds > 0 else timedelta.min
