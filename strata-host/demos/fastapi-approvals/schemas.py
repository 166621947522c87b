"""What goes in and out."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from strata_core import ThreadState

__all__ = ["Answer", "Listed", "Listing", "NewTransfer", "TransferView"]


class NewTransfer(BaseModel, extra="forbid"):
    id: str = Field(pattern=r"^[A-Za-z0-9-]{1,64}$", description="The client's own: a request sent twice pays once.")
    beneficiary: str = Field(min_length=1)
    amount: Decimal = Field(gt=0, allow_inf_nan=False)


class Answer(BaseModel, extra="forbid"):
    approve: bool = Field(strict=True)
    overrides: dict[Literal["beneficiary", "amount"], JsonValue] = Field(
        default={},
        description="What the reviewer corrects.  Whether a value fits is for the graph's state type to say.",
    )


class TransferView(BaseModel):
    id: str
    state: ThreadState
    beneficiary: str
    amount: Decimal
    status: str
    approved_by: str | None


class Listed(BaseModel):
    id: str
    state: ThreadState
    node: str | None
    updated_at: datetime
    due_at: datetime | None


class Listing(BaseModel):
    transfers: list[Listed]
    next_cursor: str | None
