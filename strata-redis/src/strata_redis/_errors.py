"""What a server or the wire said, as the store's own errors."""

from __future__ import annotations

import re
from typing import Final

from strata_core.errors import CorruptCheckpointError, StoreBusyError, StoreUnavailableError, StrataError
from strata_redis._calls import Answer, Lost, ServerError

__all__ = ["is_cross_slot", "may_have_happened", "unavailable"]

_HINTS: Final = {
    "OOM": "its memory is full; purge, or raise maxmemory",
    "READONLY": "it is a replica and takes no writes",
    "LOADING": "it is still loading its data",
    "CLUSTERDOWN": "the cluster does not serve all of its slots",
    "MASTERDOWN": "its master is away",
    "TRYAGAIN": "keys are being moved between nodes",
    "MOVED": "its nodes send keys to and fro",
    "ASK": "its nodes send keys to and fro",
    "MISCONF": "it cannot write to its disk, and so takes no writes",
    "NOREPLICAS": "it has fewer replicas than min-replicas-to-write asks for",
    "BUSY": "it is busy with a script",
    "NOAUTH": "it does not let this user in",
    "WRONGPASS": "it does not let this user in",
    "NOPERM": "this user may not do that",
    "CROSSSLOT": "it takes no script on keys of several slots",
}
_CODE: Final = re.compile(rf"\b({'|'.join([*_HINTS, 'WRONGTYPE'])})\b")
"""Codes that a server gives before it does anything.  Before Redis 7.0 a script's error has them in its middle."""


def _code(error: BaseException) -> str:
    found = _CODE.search(str(error))
    return "" if found is None else found[1]


def is_cross_slot(answer: Answer) -> bool:
    """Tell whether a server refused a script because its keys are in several slots."""
    return isinstance(answer, ServerError) and answer.code == "CROSSSLOT"


def may_have_happened(answer: Answer) -> bool:
    """Tell whether what the answer is for may have been done."""
    if isinstance(answer, Lost):
        return answer.sent
    if not isinstance(answer, Exception):
        return True
    code = _code(answer)
    return not code or (code == "NOPERM" and "script" in str(answer))


def unavailable(error: Exception, where: str, *, maybe_written: bool = False, thread_id: str = "*") -> StrataError:
    """Return the error that a caller sees, from its cause."""
    raised: StrataError
    if isinstance(error, Lost) and not isinstance(error.cause, ServerError):
        cause = error.cause
        if error.busy:
            raised = StoreBusyError(f"{where}: every connection stayed in use; raise RedisOptions.pool_size")
        else:
            said = str(cause) or type(cause).__name__
            if isinstance(cause, TimeoutError):
                said = "did not answer in time" if error.sent else "could not be reached in time"
            raised = StoreUnavailableError(f"{where}: {said}", maybe_written=maybe_written)
    else:
        cause = error.cause if isinstance(error, Lost) else error
        code = _code(cause)
        said = _HINTS.get(code, "")
        if code == "MOVED" and "cluster=true" not in where.lower():
            said = "it is a node of a cluster; add ?cluster=true to the URL"
        words = str(cause).removeprefix("ERR ")
        detail = f"{said}: {words}" if said else words
        if code == "WRONGTYPE":
            raised = CorruptCheckpointError(
                thread_id, None, f"cannot be read: {where} has another kind of key: {words}"
            )
        elif code == "BUSY" and not maybe_written:
            raised = StoreBusyError(f"{where}: {detail}")
        else:
            raised = StoreUnavailableError(f"{where}: {detail}", maybe_written=maybe_written)
    raised.__cause__ = cause
    return raised
