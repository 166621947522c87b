"""The strict converter: what `strata_core.graph._types` lists, in both directions, and nothing else.

It is a cattrs converter, so that users can take it, register hooks for their own types, and give it to a graph.
Unstructuring is strict as well: a value that would not read back as itself (a subclass, a list where a tuple is
declared) is refused when it is saved, not days later.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Final

from cattrs import Converter

from strata_core.graph._own_hooks import by_base
from strata_core.graph._structure import load_factory
from strata_core.graph._unstructure import dump_factory

__all__ = ["StrictConverter"]

_ASKED_FIRST: Final = (str, bytes, int, float, Enum, Path)
"""The classes for which, and for whose subclasses, cattrs has hooks of its own that come before every factory."""


class StrictConverter(Converter):
    """A cattrs converter that converts nothing: what does not fit is refused with its path."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_unstructure_hook_factory(lambda _: True, dump_factory)
        self.register_structure_hook_factory(lambda _: True, load_factory)
        load = by_base(lambda value, tp: load_factory(tp, self)(value, tp))
        dump = by_base(lambda value: dump_factory(type(value), self)(value))
        for kind in _ASKED_FIRST:
            self.register_structure_hook(kind, load)
            self.register_unstructure_hook(kind, dump)
