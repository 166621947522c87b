"""Checkpoints to save, and ways to compare what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from strata_core.records import (
    Checkpoint,
    CheckpointStatus,
    GraphIdentity,
    HumanDecision,
    Lease,
    Wait,
    WaitKind,
)

__all__ = [
    "BASE",
    "LONG",
    "SHORT",
    "THREAD_IDS",
    "checkpoint",
    "completed",
    "every_field",
    "forged",
    "spelled",
]

BASE: Final = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG: Final = timedelta(hours=1)
"""The ttl of a lease that lives to the end of its test."""
SHORT: Final = timedelta(milliseconds=300)
"""The ttl of a lease that is there to expire, also on a server's clock."""

THREAD_IDS: Final = (
    "order-1",
    "Order-1",
    "order-1 ",
    " order-1",
    "order",
    "order-10",
    "order:1",
    "order/1",
    "../order-1",
    ".",
    "..",
    "/etc/passwd",
    "C:\\order",
    "*",
    "order-*",
    "%",
    "order-_",
    "{order}",
    "[order]",
    "order\n1",
    "order\t1",
    "\x01",
    "\x7f",
    "None",
    "0",
    "'; DROP TABLE checkpoints; --",
    '"',
    "caf\u00e9",
    "cafe\u0301",
    "\u00df",
    "ss",
    "\u0130",
    "\U0001f600",
    "\uffff",
    "\u202e",
    "x" * 512,
    "x" * 511,
    "\u00e9" * 256,
)
"""IDs that a store must keep apart, each exactly as it is."""


def checkpoint(
    thread_id: str = "t",
    status: CheckpointStatus = CheckpointStatus.RUNNING,
    state: Mapping[str, Any] | None = None,
    *,
    at: datetime = BASE,
    **fields: Any,
) -> Checkpoint:
    """Return a checkpoint; the state is ``{"n": 0}`` unless given."""
    return Checkpoint(thread_id, status, {"n": 0} if state is None else state, at, **fields)


def completed(thread_id: str = "t", *, at: datetime = BASE, **fields: Any) -> Checkpoint:
    """Return the last checkpoint of a finished thread."""
    return checkpoint(thread_id, CheckpointStatus.COMPLETED, at=at, **fields)


def every_field(thread_id: str, status: CheckpointStatus) -> Checkpoint:
    """Return a checkpoint whose fields are all filled in, two levels of nesting included."""
    innermost = checkpoint(thread_id, status, {"deep": [1, {"er": None}]}, suspended_node="Innermost")
    inner = checkpoint(
        thread_id,
        status,
        {"inner": {"a": 1.5, "b": "\u00e9"}},
        at=BASE + timedelta(microseconds=1),
        suspended_node="Inner",
        next_node="After inner",
        metadata={"child": "yes"},
        nested=innermost,
        graph=GraphIdentity("child", "7"),
    )
    return Checkpoint(
        thread_id=thread_id,
        status=status,
        frozen_state={"amount": 12.5, "lines": [{"sku": "a", "count": 2}], "note": None, "paid": False},
        created_at=BASE + timedelta(microseconds=123_456),
        suspended_node="Approve \u2713",
        next_node="Send",
        metadata={"tenant": "acme", "strata.reason": "waiting", "": "empty key", "empty": ""},
        nested=inner,
        decision=HumanDecision(
            boundary="Approve \u2713",
            is_approved=False,
            reviewer="ann@example.com",
            decided_at=BASE + timedelta(seconds=5, microseconds=7),
            overrides={"amount": 11, "lines": [], "note": {"by": "ann"}},
        ),
        wait=Wait(WaitKind.EVENT, "payment.settled", BASE + timedelta(days=2, microseconds=1), "Escalate"),
        graph=GraphIdentity("wire-transfer", "2026.1"),
        resumed_at=BASE + timedelta(minutes=3, microseconds=999_999),
    )


def forged(thread_id: str, token: int = 1) -> Lease:
    """Return a lease that nobody was given."""
    return Lease(thread_id, token, "forger", BASE)


def spelled(value: object) -> str:
    """Return the JSON text of a value: unlike ``==``, it tells 1 from 1.0 and True, and minds the order of keys."""
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False)
