"""The members of one object of a definition, each taken with the type that it must have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from strata_core._guess import did_you_mean
from strata_core.graph._problems import GraphProblem, ProblemCode

__all__ = ["Members", "Notes"]

_NAMES: Final = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _NAMES.get(type(value), type(value).__name__)


class Notes:
    """What is wrong with the shape of one graph of a definition.

    Attributes:
        path: The names of the nodes and branches around the graph.
        problems: What was noted, in order.
        is_whole: Whether everything is there that the checks of a graph look at.
    """

    __slots__ = ("is_whole", "path", "problems")

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        self.problems: list[GraphProblem] = []
        self.is_whole = True

    def add(self, problem: GraphProblem) -> None:
        """Note one that leaves nothing out."""
        self.problems.append(GraphProblem(problem.code, problem.node, problem.text, self.path))

    def shape(self, where: str, text: str, node: str | None, *, is_damage: bool = True) -> None:
        """Note that a part of the document is not as it has to be."""
        self.is_whole = self.is_whole and not is_damage
        self.add(GraphProblem(ProblemCode.INVALID_DEFINITION, node, f"{where}: {text}"))


class Members:
    """Takes the members of an object.

    Each method returns None for what is not there, is null where it may be left out, or is not of the type; that is
    noted.  `close` notes what nobody has taken.

    Args:
        notes: Where that is noted.
        where: The path of the object, such as ``nodes[3]``; empty for the whole document.
        value: What should be an object.
        node: The node that it is about; None for the graph.
    """

    def __init__(self, notes: Notes, where: str, value: object, node: str | None = None) -> None:
        self.where = where
        self._notes = notes
        self._members: dict[str, Any] = value if isinstance(value, dict) else {}
        self._known: list[str] = []
        self.node = node
        self.is_object = isinstance(value, dict)
        if not self.is_object:
            notes.shape(where or "the definition", f"must be an object, not {_kind(value)}", node)

    def path(self, key: str) -> str:
        """Return the path of a member."""
        return f"{self.where}.{key}" if self.where else key

    def text(self, key: str, *, required: bool = False) -> str | None:
        """Take a string."""
        value = self._take(key, required, "a string", str)
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool:
        """Take a boolean; one that is not there is false."""
        return self._take(key, False, "a boolean", bool) is True

    def number(self, key: str) -> int | float | None:
        """Take a number."""
        value = self._take(key, False, "a number", int, float)
        return value if isinstance(value, int | float) else None

    def integer(self, key: str, *, required: bool = False) -> int | None:
        """Take a number without a fraction."""
        value = self._take(key, required, "a whole number", int, float)
        if isinstance(value, float) and not value.is_integer():
            self._notes.shape(self.path(key), "must be a whole number", self.node)
            return None
        return int(value) if isinstance(value, int | float) else None

    def array(self, key: str, *, required: bool = False) -> list[Any]:
        """Take an array; one that is not there is empty."""
        value = self._take(key, required, "an array", list)
        return value if isinstance(value, list) else []

    def texts(self, key: str, *, required: bool = False) -> list[str]:
        """Take an array of strings, leaving out what is none."""
        texts = []
        for number, value in enumerate(self.array(key, required=required)):
            if isinstance(value, str):
                texts.append(value)
            else:
                self.wrong(f"{key}[{number}]", value, "a string")
        return texts

    def choice(self, key: str, choices: Iterable[str]) -> str | None:
        """Take one of several strings, which has to be there."""
        value = self.text(key, required=True)
        if value is None or value in (names := list(choices)):
            return value
        known = " or ".join(map(repr, names))
        self._notes.shape(self.path(key), f"must be {known}, not {value!r}", self.node)
        return None

    def any(self, key: str, *, required: bool = False) -> Any:
        """Take whatever it is."""
        self._known.append(key)
        value = self._members.get(key)
        if required and self.is_object and (value is None):
            problem = "must not be null" if key in self._members else "is missing"
            self._notes.shape(self.path(key), problem, self.node)
        return value

    def wrong(self, key: str, value: object, wanted: str) -> None:
        """Note that a member is of another type than wanted."""
        self._notes.shape(self.path(key), f"must be {wanted}, not {_kind(value)}", self.node)

    def skip(self, *keys: str) -> None:
        """Take members of which nothing can be said."""
        self._known += keys

    def close(self) -> None:
        """Note the members that nobody has taken."""
        for key in self._members:
            if key not in self._known:
                text = f"is no key of a definition there{did_you_mean(key, self._known)}"
                self._notes.shape(self.path(key), text, self.node, is_damage=False)

    def _take(self, key: str, required: bool, wanted: str, *types: type) -> Any:
        value = self.any(key, required=required)
        if value is None or type(value) in types:
            return value
        self.wrong(key, value, wanted)
        return None
