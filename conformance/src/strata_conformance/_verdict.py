"""From the outcomes of tests to a verdict on a store, capability by capability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib.metadata import version
from typing import Any, Final, Literal, TypeAlias

import attrs

from strata_conformance._contract import CONTRACT

__all__ = ["REQUIRED", "Judge", "Outcome", "Promised", "line", "rows", "unproven", "was_run"]

REQUIRED: Final = "required"
Verdict: TypeAlias = Literal["conforms", "does not conform", "conforms but for known failures", "not judged whole"]


class Outcome(StrEnum):
    """What the tests of a promise came to, in the order in which one outweighs another."""

    NOT_RUN = "not run"
    """Left out of the run, or the run ended before."""
    INAPPLICABLE = "inapplicable"
    """The store declares something else: a refusal of what it does, or a promise of what it does not."""
    UNPROVEN = "unproven"
    """It was given nothing to test it with, or was skipped by hand; the reason tells."""
    KEPT = "kept"
    KNOWN = "known failure"
    BROKEN = "broken"


_WEIGHT: Final = {outcome: weight for weight, outcome in enumerate(Outcome)}


@attrs.frozen
class Promised:
    """What a report says of the promise of its test.

    Attributes:
        store: The store under test.
        id: The promise.
        text: Its sentence.
        needs: The capabilities that it needs.
        refuses: The capabilities whose refusal it is.
    """

    store: str
    id: str
    text: str
    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()

    def properties(self) -> Iterable[tuple[str, str]]:
        """Return it as properties of a test, as JUnit reports show them."""
        yield "store", self.store
        yield "contract", str(CONTRACT)
        yield "promise", self.id
        yield "promise_text", self.text
        yield "needs", " ".join(self.needs)
        yield "refuses", " ".join(self.refuses)

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Promised | None:
        """Return what `properties` made; None for a test that is not of the suite."""
        if "promise_text" not in properties:
            return None
        return cls(
            properties["store"],
            properties["promise"],
            properties["promise_text"],
            tuple(properties["needs"].split()),
            tuple(properties["refuses"].split()),
        )


class Judge:
    """Gathers outcomes of tests, store by store."""

    def __init__(self) -> None:
        self._found: dict[Promised, Outcome] = {}
        self._reasons: dict[Promised, dict[str, None]] = {}

    def expect(self, promised: Promised) -> None:
        """Count in a promise that should be tested."""
        self._found.setdefault(promised, Outcome.NOT_RUN)

    def add(self, promised: Promised, outcome: Outcome, reason: str = "") -> None:
        """Take in the outcome of one test; the worst of a promise's tests counts."""
        before = self._found.get(promised, Outcome.NOT_RUN)
        self._found[promised] = max(before, outcome, key=_WEIGHT.__getitem__)
        if reason:
            self._reasons.setdefault(promised, {})[reason] = None

    def report(self) -> dict[str, Any]:
        """Return all of it as JSON: each store with its verdict, its capabilities and its promises."""
        stores: dict[str, dict[Promised, Outcome]] = {}
        for promised, outcome in self._found.items():
            stores.setdefault(promised.store, {})[promised] = outcome
        return {
            "suite": version("strata-conformance"),
            "contract": CONTRACT,
            "stores": {name: self._store(found) for name, found in stores.items()},
        }

    def _store(self, found: Mapping[Promised, Outcome]) -> dict[str, Any]:
        outcomes = set(found.values())
        return {
            "verdict": _verdict(outcomes),
            "capabilities": _capabilities(found),
            "promises": {
                promised.id: {
                    "text": promised.text,
                    "needs": list(promised.needs),
                    "refuses": list(promised.refuses),
                    "outcome": outcome.value,
                    "reasons": list(self._reasons.get(promised, ())),
                }
                for promised, outcome in found.items()
            },
        }


def _verdict(outcomes: set[Outcome]) -> Verdict:
    if Outcome.BROKEN in outcomes:
        return "does not conform"
    if Outcome.NOT_RUN in outcomes:
        return "not judged whole"
    return "conforms but for known failures" if Outcome.KNOWN in outcomes else "conforms"


def _capabilities(found: Mapping[Promised, Outcome]) -> dict[str, dict[str, Any]]:
    needing: dict[str, list[Outcome]] = {}
    refusing: dict[str, list[Outcome]] = {}
    for promised, outcome in found.items():
        for capability in promised.needs or (() if promised.refuses else (REQUIRED,)):
            needing.setdefault(capability, []).append(outcome)
        for capability in promised.refuses:
            refusing.setdefault(capability, []).append(outcome)
    return {
        capability: _capability(needing.get(capability, []), refusing.get(capability, []))
        for capability in sorted({*needing, *refusing}, key=lambda name: (name != REQUIRED, name))
    }


def _capability(needing: list[Outcome], refusing: list[Outcome]) -> dict[str, Any]:
    refused = [outcome for outcome in refusing if outcome is not Outcome.INAPPLICABLE]
    applicable = [outcome for outcome in needing if outcome is not Outcome.INAPPLICABLE]
    of_interest = applicable or refused
    return {
        "declared": bool(applicable),
        "verdict": _verdict(set(of_interest)),
        "kept": of_interest.count(Outcome.KEPT),
        "promises": len(of_interest),
        "known_failures": of_interest.count(Outcome.KNOWN),
        "unproven": of_interest.count(Outcome.UNPROVEN),
    }


def rows(store: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield for each capability of a store in a report: its name, and what to say of it."""
    for name, found in store["capabilities"].items():
        if name != REQUIRED and not found["declared"]:
            if found["promises"] == 0:
                yield name, "not declared"
            elif found["kept"] == found["promises"]:
                yield name, "not declared (refusal ok)"
            else:
                yield name, f"not declared ({found['verdict']})"
            continue
        said = f"{found['verdict']} {found['kept']}/{found['promises']}"
        for count, what in ((found["known_failures"], "known to fail"), (found["unproven"], "unproven")):
            said += f", {count} {what}" if count else ""
        yield name, said


def line(store: Mapping[str, Any]) -> str:
    """Return the verdicts on a store in a report as one line."""
    return " | ".join(f"{name} {said}" for name, said in rows(store))


def unproven(store: Mapping[str, Any]) -> Iterable[str]:
    """Yield a line for each promise of a store in a report that was given nothing to be tested with, and why."""
    for name, promise in store["promises"].items():
        if promise["outcome"] == Outcome.UNPROVEN:
            yield f"unproven: {name} ({'; '.join(promise['reasons']) or 'skipped'})"


def was_run(store: Mapping[str, Any]) -> bool:
    """Tell whether any promise of a store in a report was tested."""
    return any(promise["outcome"] != Outcome.NOT_RUN for promise in store["promises"].values())
