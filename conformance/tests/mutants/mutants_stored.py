"""What core makes of rows and heads, gone wrong: each promise of stored rows with one rule of core replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from mutant_kit import breaks

from strata_core.codec import _record_decoder, _state
from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.memory import MemoryBackend
from strata_core.records import LogEntry
from strata_core.store import _reading, _saving
from strata_core.store._closing import Closer
from strata_core.store._reading import Reader
from strata_core.store._saving import Saver

_compose: Any = Saver._compose
_load: Any = Reader.load
_take_snapshot: Any = _state.take_snapshot


class Core(MemoryBackend):
    """A good backend under a core in which `replaced` stands for what it should be: the object, the name, the new."""

    replaced: ClassVar[tuple[Any, str, Any]]


def _step_back(error: type[CorruptCheckpointError | SchemaVersionError], text: str) -> Callable[..., Any]:
    async def load(self: Any, thread_id: str, at: int | None) -> LogEntry | None:
        try:
            return await _load(self, thread_id, at)  # type: ignore[no-any-return]  # what core returns
        except error as raised:
            if text not in str(raised):
                raise
            return await load(self, thread_id, 0)

    return load


@breaks("stored-2")
class MakesADifferenceOfEveryStatus(Core):
    """Stores a checkpoint that is not running as a difference, and lets the next one build on it."""

    replaced = (Saver, "_compose", lambda self, snapshot, memory, _: _compose(self, snapshot, memory, True))


@breaks(
    "stored-3",
    also={
        "external-2 external-3 external-4 external-7": "offloads small values, and looks at their blobs",
        "stored-7 stored-8": "looks for blobs, to see that none is left",
    },
)
class OffloadsLater(Core):
    """Keeps values in their rows up to a thousand times the threshold."""

    replaced = (
        _saving,
        "take_snapshot",
        lambda state, threshold, before: _take_snapshot(state, threshold and threshold * 1000, before),
    )


@breaks("stored-4")
class StepsBackFromADamagedState(Core):
    """Loads an earlier checkpoint when the state of the latest is no JSON."""

    replaced = (Reader, "load", _step_back(CorruptCheckpointError, "has a state"))


@breaks("stored-5")
class SkipsUnknownMembers(Core):
    """Reads a record that holds more than it knows."""

    replaced = (_record_decoder._Members, "finish", lambda *_: None)


@breaks("stored-6")
class StepsBackFromANewerRow(Core):
    """Loads an earlier checkpoint when the latest is of a newer format."""

    replaced = (Reader, "load", _step_back(SchemaVersionError, "newer"))


@breaks("stored-8")
class ErasesWhatItCannotReach(Core):
    """Purges a thread whose blobs lie in a blob store that it was not given."""

    replaced = (Closer, "can_erase", lambda *_: True)


class _Anything:
    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]  # it is equal to everything


@breaks(
    "stored-9",
    also={
        "external-3": "says the same of a separate blob store",
    },
)
class NeverChecksAHash(Core):
    """Takes whatever stands under the name of a blob."""

    replaced = (_reading, "digest_of", lambda _: _Anything())
