"""The list of promises: collected from the tests, rendered as ``CONTRACT.md``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from strata_conformance._promise import Promise, promises_of

__all__ = ["CONTRACT", "PREFACE", "collect", "render"]

CONTRACT: Final = 1
"""The number of the contract; grows with a release that adds, changes or withdraws a promise."""

PREFACE: Final = f"""\
# The contract of a Strata store, number {CONTRACT}

What a store, a row backend or a blob store promises, one sentence a promise. Each promise has an ID that is never used
again for anything else, and one test, named after it, in the class that heads the section. A promise that needs a
capability names it: a store that does not declare the capability is held to the refusal instead. All others are
required, and cannot be switched off.

The promises of ProcessTests are proved by processes that open the storage themselves: a class of tests says how with
the fixture `reference`, and without one they are skipped, as unproven, with the reason "no reference given".

A store whose storage is memory of its process says so with `in_memory`; there is nothing to set up there, and what
setup-1, setup-3 and row-17 say of a place where no store was ever set up does not apply.

No port turns expiry on: it is an option of the stores that can. A class of tests says how it is set with the fixture
`open_expiring_store` (or `open_expiring_backend`), whose argument is the ttl; without one, what it promises is skipped,
as unproven.

A test compares this page with the tests, both ways.
"""


def collect(classes: Iterable[type]) -> dict[str, Sequence[Promise]]:
    """Return the promises of each class of tests, by its name.

    Raises:
        ValueError: Two promises have one ID, or one has no text.
    """
    found: dict[str, Sequence[Promise]] = {tests.__name__: list(promises_of(tests)) for tests in classes}
    seen: set[str] = set()
    for promise in (promise for promises in found.values() for promise in promises):
        if promise.id in seen or not promise.text or not re.fullmatch(r"[a-z]+-[1-9]\d*", promise.id):
            message = f"{promise.test}: the promise {promise.id!r} is given twice, malformed or without text"
            raise ValueError(message)
        seen.add(promise.id)
    return found


def render(contract: dict[str, Sequence[Promise]]) -> str:
    """Return the contract as Markdown."""
    parts = [PREFACE]
    for name, promises in contract.items():
        parts.append(f"\n## {name}\n\n")
        for promise in promises:
            needs = f" *(needs {' and '.join(promise.needs)})*" if promise.needs else ""
            parts.append(f"- **{promise.id}** {promise.text}{needs}\n")
    return "".join(parts)
