"""What random programs are made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from strata_core.records import (
    CheckpointStatus,
    ThreadState,
)

__all__ = [
    "BIG",
    "DAY",
    "NAMES",
    "OWNER",
    "TTLS",
    "Content",
    "contents",
    "expectations",
    "handles",
    "names",
    "options",
    "thread_states",
    "writes",
]

DAY: Final = timedelta(days=1)
TTLS: Final = (timedelta(seconds=10), timedelta(seconds=60))
BIG: Final = "x" * 300
NAMES: Final = ("a", "A", "a ")
OWNER: Final = "worker"

handles = st.sampled_from(["one", "one", "two"])
names = st.sampled_from(["a", "a", "a", "A", "a "])
expectations = st.sampled_from(["latest"] * 3 + ["revision"] * 3 + ["nothing", "earlier", "later", "other life"])
writes = st.sampled_from([0] * 9 + [1, 4, 8])
"""Which write to repeat, counted back; 0 for a new one."""
values = st.sampled_from([0, 1, 1.0, True, None, "", "text", [], [1, {"deep": 2}], {}, {"b": 1, "a": 2}, BIG, [BIG]])
states = st.dictionaries(st.sampled_from(["n", "a", "set", "blobs", "é"]), values, max_size=4)
thread_states = st.sets(st.sampled_from(list(ThreadState)), max_size=3)
options = st.fixed_dictionaries({"deltas": st.booleans(), "offload": st.booleans()})


@attrs.frozen
class Content:
    """What a checkpoint of a random program holds, besides its thread and its time."""

    status: CheckpointStatus
    state: dict[str, Any]
    day: int
    color: str | None
    version: str | None
    due: int | None
    is_resumed: bool


contents = st.builds(
    Content,
    st.sampled_from([CheckpointStatus.RUNNING] * 9 + list(CheckpointStatus)),
    states,
    st.integers(0, 3),
    st.sampled_from([None, "red", "Red"]),
    st.sampled_from([None, "1", "2"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([False, False, False, True]),
)
