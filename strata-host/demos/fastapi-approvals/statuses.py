"""What a client is told when a call on the graph comes to nothing: an HTTP status and a sentence for every code.

The sentences are ours.  `Failed.detail` may hold the text of any error, with a password of the bank's URL in it, and
goes out for `INVALID_SIGNAL` only, where it names the field that does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from strata_core import Cancelled, CancelReason, Failed, FailureCode

__all__ = ["CANCELLED", "FAILED", "refusal"]

FAILED: Final[Mapping[FailureCode, tuple[HTTPStatus, str]]] = {
    FailureCode.NODE_FAILED: (HTTPStatus.BAD_GATEWAY, "a step of the transfer failed; retry it"),
    FailureCode.ROUTING_FAILED: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot go on; we have to mend it"),
    FailureCode.TIMER_FAILED: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot go on; we have to mend it"),
    FailureCode.INVALID_STATE: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot be saved; we have to mend it"),
    FailureCode.THREAD_EXISTS: (HTTPStatus.CONFLICT, "there is a transfer with this ID already"),
    FailureCode.NOT_FOUND: (HTTPStatus.NOT_FOUND, "there is no transfer with this ID"),
    FailureCode.ALREADY_RESUMED: (HTTPStatus.CONFLICT, "somebody else has answered the transfer"),
    FailureCode.RUNNING: (HTTPStatus.CONFLICT, "the transfer is running"),
    FailureCode.COMPLETED: (HTTPStatus.CONFLICT, "the transfer is finished"),
    FailureCode.ENDED: (HTTPStatus.CONFLICT, "the transfer was withdrawn"),
    FailureCode.LEASE_HELD: (HTTPStatus.CONFLICT, "the transfer is being worked on; try again in a moment"),
    FailureCode.WRONG_GRAPH: (HTTPStatus.NOT_FOUND, "there is no transfer with this ID"),  # but something else
    FailureCode.WRONG_WAIT: (HTTPStatus.CONFLICT, "the transfer does not wait for a person"),
    FailureCode.WRONG_EVENT: (HTTPStatus.CONFLICT, "the transfer waits for something else"),
    FailureCode.NOT_DUE: (HTTPStatus.CONFLICT, "the time of the transfer has not come"),
    FailureCode.NEVER_DUE: (HTTPStatus.CONFLICT, "the transfer waits for as long as it takes"),
    FailureCode.NOT_WAITING: (HTTPStatus.CONFLICT, "the transfer does not wait; it has stopped on its way"),
    FailureCode.SIGNAL_REQUIRED: (HTTPStatus.CONFLICT, "the transfer waits for an answer; there is nothing to retry"),
    FailureCode.UNKNOWN_LEVEL: (HTTPStatus.UNPROCESSABLE_ENTITY, "a correction is for what is not there"),
    FailureCode.INVALID_SIGNAL: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "a correction does not fit; the transfer still waits",
    ),
    FailureCode.REHYDRATION_FAILED: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot be read by this version"),
    FailureCode.UNKNOWN_NODE: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot go on with this version"),
    FailureCode.NOT_RUNNING: (HTTPStatus.CONFLICT, "the transfer does not run"),
    FailureCode.NOT_RECOVERABLE: (HTTPStatus.CONFLICT, "nobody knows how far the transfer came; withdraw it"),
    FailureCode.RESUME_CHECK_FAILED: (HTTPStatus.CONFLICT, "what was answered may not hold any more; retry it"),
    FailureCode.SUPERSEDED: (HTTPStatus.CONFLICT, "somebody else went on with the transfer"),
}

CANCELLED: Final[Mapping[CancelReason, tuple[HTTPStatus, str]]] = {
    CancelReason.CANCELLED: (HTTPStatus.SERVICE_UNAVAILABLE, "the transfer was stopped; retry it"),
    CancelReason.DEADLINE: (HTTPStatus.GATEWAY_TIMEOUT, "a step of the transfer took too long; retry it"),
    CancelReason.ENDED: (HTTPStatus.CONFLICT, "the transfer was withdrawn"),
    CancelReason.TIMED_OUT: (HTTPStatus.CONFLICT, "nobody answered the transfer in time"),
    CancelReason.LEASE_LOST: (HTTPStatus.CONFLICT, "somebody else went on with the transfer"),
}


def refusal(result: Failed | Cancelled) -> tuple[HTTPStatus, dict[str, Any]]:
    """Return the status and the body for a call that came to nothing."""
    if isinstance(result, Cancelled):
        status, message = CANCELLED[result.reason]
        return status, {"code": result.reason, "message": message}
    status, message = FAILED[result.code]
    if result.code is FailureCode.INVALID_SIGNAL:
        message = f"{message}: {result.detail}"
    return status, {"code": result.code, "message": message}
