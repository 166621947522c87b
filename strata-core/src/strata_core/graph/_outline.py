"""A graph that a definition describes, as far as it can be checked."""

from __future__ import annotations

from collections.abc import Iterator

from strata_core.graph._drafts import Draft

__all__ = ["Outline", "declared"]


def declared(*_: object) -> object:
    """Stand for a function of a graph whose definition tells that there is one, and not what it does.

    Raises:
        TypeError: Always; a definition does not run.
    """
    raise TypeError("a definition describes a graph and does not hold its functions")


class Outline:
    """A graph that a definition describes: what a builder would have been told, with `declared` for each function.

    Attributes:
        draft: What `find_problems` looks at, as at that of a builder.
        subgraphs: The children of its subgraph nodes, by name.
        on_resume: Whether it was compiled with that hook, or None.
        on_interrupted: Likewise.
        state_class: None: a definition does not tell what the states are.
    """

    __slots__ = ("draft", "on_interrupted", "on_resume", "subgraphs")

    state_class: None = None

    def __init__(self, on_resume: bool, on_interrupted: bool) -> None:
        self.draft = Draft()
        self.subgraphs: dict[str, Outline] = {}
        self.on_resume = on_resume or None
        self.on_interrupted = on_interrupted or None

    def waits(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths to the nodes after which a thread waits, also inside of subgraphs."""
        waiting = {wait.node for wait in self.draft.waits}
        for node in self.draft.nodes:
            if node.name in waiting:
                yield (node.name,)
            if node.name in self.subgraphs:
                for path in self.subgraphs[node.name].waits():
                    yield (node.name, *path)
