"""The strict converter: what `strata_core.graph._types` lists, in both directions, and nothing else.

It is a cattrs converter, so that users can take it, register hooks for their own types, and give it to a graph.
Unstructuring is strict as well: a value that would not read back as itself (a subclass, a list where a tuple is
declared) is refused when it is saved, not days later.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from strata_core.graph._structure import load_factory
from strata_core.graph._unstructure import dump_factory, dump_text

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["make_converter"]


def make_converter() -> Converter:
    """Return a new strict converter."""
    from cattrs import Converter

    converter = Converter()
    converter.register_unstructure_hook_factory(lambda _: True, dump_factory)
    converter.register_structure_hook_factory(lambda _: True, load_factory)
    # cattrs has hooks of its own for these classes and their subclasses, which come before every factory.
    for kind in (str, bytes, int, float, Enum):
        converter.register_structure_hook(kind, lambda value, tp: load_factory(tp, converter)(value, tp))
    for kind in (str, bytes):
        converter.register_unstructure_hook(kind, dump_text)
    return converter
