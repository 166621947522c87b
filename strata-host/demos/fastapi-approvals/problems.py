"""What a client is told when something cannot be done: an HTTP status and a sentence for every code.

The sentences are ours.  `Failed.detail` may hold the text of any error, with a password of the bank's URL in it, and
goes out for `INVALID_SIGNAL` only, where it names the field that does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler as tell
from fastapi.exceptions import RequestValidationError

from strata_core import Cancelled, CancelReason, Failed, FailureCode, InvalidInputError, StoreUnavailableError

__all__ = ["CANCELLED", "FAILED", "not_found", "problem", "refused", "tell_problems"]

FAILED: Final[Mapping[FailureCode, tuple[HTTPStatus, str]]] = {
    FailureCode.NODE_FAILED: (HTTPStatus.BAD_GATEWAY, "a step of the transfer failed; retry it"),
    FailureCode.ROUTING_FAILED: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot go on; we have to mend it"),
    FailureCode.TIMER_FAILED: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot go on; we have to mend it"),
    FailureCode.INVALID_STATE: (HTTPStatus.INTERNAL_SERVER_ERROR, "the transfer cannot be saved; we have to mend it"),
    FailureCode.THREAD_EXISTS: (HTTPStatus.CONFLICT, "there is a transfer with this ID already"),
    FailureCode.NOT_FOUND: (HTTPStatus.NOT_FOUND, "there is no transfer with this ID"),
    FailureCode.ALREADY_RESUMED: (HTTPStatus.CONFLICT, "somebody else has answered the transfer"),
    FailureCode.CHANGED: (HTTPStatus.PRECONDITION_FAILED, "the transfer is not what you have seen; look again"),
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


def problem(status: int, code: str, message: str) -> HTTPException:
    """Return what to raise; every refusal has this shape."""
    return HTTPException(status, {"code": code, "message": message})


def refused(result: Failed | Cancelled) -> HTTPException:
    """Return what to raise when a call on the graph came to nothing."""
    if isinstance(result, Cancelled):
        status, message = CANCELLED[result.reason]
        return problem(status, result.reason, message)
    status, message = FAILED[result.code]
    if result.code is FailureCode.INVALID_SIGNAL:
        message = f"{message}: {result.detail}"
    return problem(status, result.code, message)


def not_found(transfer_id: str) -> HTTPException:
    return refused(Failed(transfer_id, FailureCode.NOT_FOUND, "it is not there, or is of another graph"))


def tell_problems(app: FastAPI) -> None:
    """Give a status to what is wrong before the graph is asked, and to a store that is down."""

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        """Name what is wrong, without repeating what was sent."""
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        return await tell(request, problem(422, "invalid_request", wrong))

    @app.exception_handler(InvalidInputError)
    async def invalid_input(request: Request, error: InvalidInputError) -> Response:
        return await tell(request, problem(422, "invalid_request", str(error)))

    @app.exception_handler(StoreUnavailableError)
    async def store_unavailable(request: Request, _: StoreUnavailableError) -> Response:
        """Ask to come again.  What had been done after all is told so then, with 409: nothing is paid twice."""
        message = "the store does not answer; try again in a moment"
        return await tell(request, problem(503, "store_unavailable", message))
