"""Transfers that wait for a person, over HTTP.

One request prepares a transfer, which freezes; another one answers it, days later, in whichever process serves it.

    uvicorn --factory service:create_app
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Annotated, Any, Final, TypedDict

import attrs
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response, status
from payments import IDENTITY, Bank, Transfer, transfer_graph
from problems import not_found, problem, refused, tell_problems
from schemas import Answer, Listed, Listing, NewTransfer, TransferView

from strata_core import (
    Cancelled,
    CompiledGraph,
    Completed,
    Failed,
    FailureCode,
    HumanSignal,
    Interrupted,
    Revision,
    RunResult,
    StrataError,
    ThreadQuery,
    ThreadState,
    open_store,
)
from strata_core.ports import StorePorts

LONGEST: Final = timedelta(seconds=20)
"""How long a request works on a transfer; then it is `cancelled`, and can be retried."""

EVERY: Final = timedelta(seconds=10)
"""How often each process looks for what is left to do."""

log: Final = logging.getLogger("approvals")


@attrs.frozen
class Desk:
    """What every request works with."""

    graph: CompiledGraph[Transfer]
    store: StorePorts


class LifespanState(TypedDict):
    desk: Desk


def the_desk(request: Request) -> Desk:
    desk: Desk = request.state.desk
    return desk


def the_reviewer(x_forwarded_user: Annotated[str | None, Header()] = None) -> str:
    """Who asks, as the proxy in front has authenticated them; put your own login here."""
    if not x_forwarded_user:
        raise problem(status.HTTP_401_UNAUTHORIZED, "unknown_user", "nobody is logged in")
    return x_forwarded_user


def the_seen(if_match: Annotated[str | None, Header()] = None) -> Revision | None:
    """What the reviewer has looked at: the ETag of it, as `If-Match`."""
    return None if if_match is None or if_match == "*" else Revision.parse(if_match.strip('"'))


OpenDesk = Annotated[Desk, Depends(the_desk)]
Reviewer = Annotated[str, Depends(the_reviewer)]
Seen = Annotated[Revision | None, Depends(the_seen)]
transfers = APIRouter(prefix="/transfers")


@transfers.post("", status_code=status.HTTP_202_ACCEPTED)
async def submit(new: NewTransfer, desk: OpenDesk, response: Response) -> TransferView:
    """Prepare a transfer; it waits for an answer."""
    transfer = Transfer(new.beneficiary, new.amount)
    result = await desk.graph.run(new.id, transfer, desk.store, if_exists="error", deadline=LONGEST)
    response.headers["Location"] = f"/transfers/{new.id}"
    return shown(result, response)


@transfers.get("")
async def listing(
    desk: OpenDesk,
    state: Annotated[list[ThreadState], Query()] = [ThreadState.INTERRUPTED],  # noqa: B006  # FastAPI copies it
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: str | None = None,
) -> Listing:
    """List what waits, or what stands elsewhere; the latest first."""
    page = await desk.store.list_threads(ThreadQuery(states=state, graph_id=IDENTITY.id, limit=limit, cursor=cursor))
    found = [
        Listed(
            id=thread.thread_id,
            state=thread.state,
            node=thread.suspended_node,
            updated_at=thread.updated_at,
            due_at=None if thread.wait is None else thread.wait.due_at,
        )
        for thread in page.threads
    ]
    return Listing(transfers=found, next_cursor=page.next_cursor)


@transfers.get("/{transfer_id}")
async def show(transfer_id: str, desk: OpenDesk, response: Response) -> TransferView:
    """Show a transfer, as a reviewer has to see it; its ETag is for the answer."""
    entry = await desk.store.load(transfer_id)
    if entry is None or entry.checkpoint.graph is None or entry.checkpoint.graph.id != IDENTITY.id:
        raise not_found(transfer_id)
    response.headers["ETag"] = f'"{entry.revision}"'
    return view(transfer_id, entry.checkpoint.state, entry.checkpoint.frozen_state)


@transfers.post("/{transfer_id}/answer")
async def answer(
    transfer_id: str, given: Answer, desk: OpenDesk, reviewer: Reviewer, seen: Seen, response: Response
) -> TransferView:
    """Answer a transfer that waits.  Of several answers one counts, and with `If-Match` only for what was seen."""
    entry = await desk.store.load(transfer_id)
    latest = None if entry is None else entry.revision
    stopped = entry is not None and entry.checkpoint.state in {ThreadState.FAILED, ThreadState.CANCELLED}
    if entry is not None and stopped and seen in {None, latest}:
        # Any signal would try the step again that stopped, a rejection too: that is for `retry` to ask for.
        message = "the transfer has stopped on its way; retry it, or withdraw it"
        raise problem(status.HTTP_409_CONFLICT, entry.checkpoint.state, message)
    signal = HumanSignal(given.approve, reviewer, overrides=dict(given.overrides))
    result = await desk.graph.resume(transfer_id, signal, desk.store, expected=seen or latest, deadline=LONGEST)
    if seen is None and isinstance(result, Failed) and result.code is FailureCode.CHANGED:
        result = attrs.evolve(result, code=FailureCode.ALREADY_RESUMED)  # since we have looked, not the client
    return shown(result, response)


@transfers.post("/{transfer_id}/retry")
async def retry(transfer_id: str, desk: OpenDesk, _: Reviewer, response: Response) -> TransferView:
    """Go on with a transfer that failed or was stopped; the answer that it had stays in effect."""
    return shown(await desk.graph.resume(transfer_id, None, desk.store, deadline=LONGEST), response)


@transfers.delete("/{transfer_id}", status_code=status.HTTP_204_NO_CONTENT)
async def withdraw(transfer_id: str, desk: OpenDesk, reviewer: Reviewer, seen: Seen) -> None:
    """End a transfer that waits or has stopped, for good."""
    result = await desk.graph.end(transfer_id, desk.store, by=reviewer, expected=seen)
    if isinstance(result, Failed):
        raise refused(result)


def shown(result: RunResult[Transfer], response: Response) -> TransferView:
    match result:
        case Interrupted(thread_id, frozen_state=transfer, revision=revision):
            response.headers["ETag"] = f'"{revision}"'
            response.status_code = status.HTTP_202_ACCEPTED
            return view(thread_id, ThreadState.INTERRUPTED, attrs.asdict(transfer))
        case Completed(thread_id, transfer):
            response.status_code = status.HTTP_200_OK
            return view(thread_id, ThreadState.COMPLETED, attrs.asdict(transfer))
        case Failed() | Cancelled():
            raise refused(result)


def view(thread_id: str, state: ThreadState, transfer: Mapping[str, Any]) -> TransferView:
    return TransferView.model_validate({"id": thread_id, "state": state, **transfer})


async def look_after(desk: Desk) -> None:
    """Finish what was begun by processes that died, and close what nobody answered in time.

    Every process does so: of several exactly one gets each transfer.
    """
    while True:
        try:
            await desk.graph.recover_all(desk.store)
            await desk.graph.wake_due(desk.store)
        except StrataError as error:
            log.warning("transfers are not looked after now: %s", error)
        await asyncio.sleep(EVERY.total_seconds())


def create_app(storage: str | os.PathLike[str] | None = None, bank: Bank | None = None) -> FastAPI:
    """Return the service.

    Args:
        storage: Path or URL of the store; by default what `STRATA_STORAGE` names, else `transfers.db`.
        bank: Who sends the money.
    """
    url = storage or os.environ.get("STRATA_STORAGE", "transfers.db")
    graph = transfer_graph(bank or Bank())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[LifespanState]:
        async with open_store(url) as store:
            desk = Desk(graph, store)
            caretaker = asyncio.create_task(look_after(desk))
            try:
                yield {"desk": desk}
            finally:
                caretaker.cancel()
                with suppress(asyncio.CancelledError):
                    await caretaker

    app = FastAPI(title="Approvals", lifespan=lifespan)
    app.include_router(transfers)
    tell_problems(app)
    return app
