"""Storage that is set up when it must not be, or is not when it should, one promise each."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mutant_kit import breaks

from strata_core.errors import ReadOnlyError, SchemaVersionError, StoreUnavailableError
from strata_core.memory import MemoryBackend
from strata_core.options import Setup
from strata_core.rows import Commit, Committed, Head, HeadQuery, Refused, Row


class Kept(MemoryBackend):
    """A good backend whose storage has to be set up, as that of a database has.

    Attributes:
        things: What stands in the storage, by name.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.things: dict[str, object] = {}

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if not read_only and setup is Setup.AUTO:
            await self.setup()
        if read_only and not self.things:
            raise StoreUnavailableError('there is no such storage; open it with setup="auto" to create it')

    async def setup(self) -> None:
        self.things.setdefault("format", 1)

    def _check(self) -> None:
        if not self.things:
            raise SchemaVersionError("was never set up: call store.setup() once", found="none", supported="1")

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        self._check()
        return await super().commit(batch)

    async def read_head(self, thread_id: str) -> Head | None:
        self._check()
        return await super().read_head(thread_id)

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        self._check()
        return await super().read(thread_id, first, last)

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        self._check()
        return await super().read_blobs(thread_id, digests)

    async def list_heads(self, query: HeadQuery) -> Sequence[Head]:
        self._check()
        return await super().list_heads(query)


@breaks(
    "setup-1",
    also={
        "row-17": "says the same of the backend",
    },
)
class CreatesWhateverSetupSays(Kept):
    """Creates its storage in every opening that may write."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await super().open(read_only=read_only, setup=Setup.AUTO)


@breaks(
    "setup-1",
    also={
        "row-17": "looks at what stands there after the same opening",
    },
)
class LeavesATraceOfEveryOpening(Kept):
    """Notes each opening beside the storage, and creates nothing else."""

    _openings = itertools.count()

    def _check(self) -> None:
        if "format" not in self.things:
            raise SchemaVersionError("was never set up: call store.setup() once", found="none", supported="1")

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if not read_only and setup is Setup.NEVER:
            self.things[f"session {next(self._openings)}"] = "open"
        await super().open(read_only=read_only, setup=setup)


@breaks(
    "setup-1",
    also={
        "row-17": "says the same of the backend",
    },
)
class FindsNothingWhereNothingWasSetUp(Kept):
    """Answers from storage that is not there as if it were empty."""

    async def read_head(self, thread_id: str) -> Head | None:
        return await super().read_head(thread_id) if self.things else None


@breaks("setup-2", also={"row-17": "a backend that was set up by another handle must take writes"})
class TakesSetupNeverForReadOnly(Kept):
    """Refuses writes when it was opened without setup."""

    _may_write = True

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await super().open(read_only=read_only, setup=setup)
        self._may_write = setup is Setup.AUTO

    async def setup(self) -> None:
        await super().setup()
        self._may_write = True

    async def commit(self, batch: Sequence[Commit]) -> Sequence[Committed | Refused]:
        self._check()
        if not self._may_write:
            raise ReadOnlyError("it was opened without setup")
        return await super().commit(batch)


@breaks("setup-3")
class CreatesWhenReadOnly(Kept):
    """Creates what is missing in a read-only opening too."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if read_only:
            await self.setup()
        await super().open(read_only=read_only, setup=setup)


@breaks("setup-3")
class IsEmptyWhenReadOnlyAndMissing(Kept):
    """Shows an empty store where there is none, when it is opened read-only."""

    _is_absent = False

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        self._is_absent = read_only and not self.things
        if not self._is_absent:
            await super().open(read_only=read_only, setup=setup)

    def _check(self) -> None:
        if not self._is_absent:
            super()._check()


@breaks("setup-3")
class SaysNoWayOut(Kept):
    """Does not say what to do about a storage that is missing."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        try:
            await super().open(read_only=read_only, setup=setup)
        except StoreUnavailableError as error:
            raise StoreUnavailableError("no such file or directory") from error


@breaks("setup-4")
class UpgradesWhenReadOnly(Kept):
    """Brings its storage up to date in every opening."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await super().open(read_only=read_only, setup=setup)
        if read_only:
            self.things["format"] = 2


@breaks("setup-4")
class CountsItsReaders(Kept):
    """Leaves a note of each that read it."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        await super().open(read_only=read_only, setup=setup)
        if read_only:
            self.things[f"reader {len(self.things)}"] = True


@breaks("row-17")
class IsSetUpOnlyWhenItOpens(Kept):
    """Has nothing to do when it is told to set itself up."""

    async def open(self, *, read_only: bool, setup: Setup) -> None:
        if not read_only and setup is Setup.AUTO:
            self.things.setdefault("format", 1)
        await super().open(read_only=read_only, setup=Setup.NEVER)

    async def setup(self) -> None:
        return None
