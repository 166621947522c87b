"""From the bytes of a definition to a JSON value."""

from __future__ import annotations

import json
import math
from typing import Any

from strata_core.graph._problems import GraphProblem, ProblemCode

__all__ = ["parse_definition"]


def parse_definition(text: bytes | str) -> tuple[Any, list[GraphProblem]]:
    """Return the value of a JSON text, and what is wrong with the text; with several values for a key, the last one.

    The value is None when the text has none.
    """
    twice: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    twice.append(key)
                seen.add(key)
        return found

    decoder = json.JSONDecoder(object_pairs_hook=members, parse_constant=_no_constant, parse_float=_finite)
    try:
        value = decoder.decode(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        return None, [_malformed(f"is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}")]
    except json.JSONDecodeError as error:
        return None, [_malformed(f"is no JSON: {error.msg} at line {error.lineno}, column {error.colno}")]
    except ValueError as error:
        return None, [_malformed(f"is no JSON for a definition: {error}")]
    except RecursionError:
        return None, [_malformed("is nested too deeply")]
    return value, [_malformed(f"has the key {key!r} twice in one object") for key in dict.fromkeys(twice)]


def _malformed(problem: str) -> GraphProblem:
    return GraphProblem(ProblemCode.MALFORMED_DEFINITION, None, f"the text {problem}")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number there")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond the range of a number")
    return number
