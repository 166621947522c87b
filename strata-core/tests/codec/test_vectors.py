"""The codec and the store, held against the golden vectors that any language can use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from strata_core.codec import decode_record, encode_record, load_json
from strata_core.errors import CorruptCheckpointError, SchemaVersionError
from strata_core.memory import MemoryBackend
from strata_core.options import Deltas, Offload
from strata_core.records import Checkpoint, LogEntry
from strata_core.rows import Row
from strata_core.store import RowStore


def decoded(text: str) -> Checkpoint:
    return decode_record(load_json(text.encode()))


def encoded(checkpoint: Checkpoint) -> str:
    return json.dumps(encode_record(checkpoint), ensure_ascii=False, separators=(",", ":"))


class Shelf(MemoryBackend):
    """A backend that holds the rows and blobs of a vector, whatever they are."""

    def __init__(self, vector: Mapping[str, Any]) -> None:
        super().__init__()
        self._given = [
            Row(
                sequence=row["sequence"],
                whole_at=row["whole_at"],
                write_id=bytes.fromhex(row["write_id"]),
                version=row["schema_version"],
                envelope=row["envelope"].encode(),
                body=row["body"].encode(),
            )
            for row in vector["rows"]
        ]
        self._contents = {digest: content.encode() for digest, content in vector["blobs"].items()}

    async def read(self, thread_id: str, first: int | None, last: int | None) -> Sequence[Row]:
        return self._given

    async def read_blobs(self, thread_id: str, digests: Collection[str]) -> Mapping[str, bytes]:
        return {digest: self._contents[digest] for digest in digests if digest in self._contents}


def read_all(vector: Mapping[str, Any]) -> Sequence[LogEntry]:
    """Read the rows of a vector through a store."""

    async def read() -> Sequence[LogEntry]:
        async with RowStore(Shelf(vector)) as store:
            return (await store.get_log(vector["thread_id"], start=vector["rows"][0]["sequence"])).entries

    return asyncio.run(read())


class TestRecords:
    def test_text_and_its_variants_read_as_the_same_record(self, record: dict[str, Any]) -> None:
        """Compared as text, which tells 1, 1.0 and true apart."""
        for text in [record["text"], *record.get("also", [])]:
            assert record["text"] == encoded(decoded(text))

    def test_a_listing_says_what_the_vector_says(self, record: dict[str, Any]) -> None:
        checkpoint = decoded(record["text"])

        def time(moment: Any) -> str | None:
            return None if moment is None else f"{moment:%m-%dT%H:%M:%S.%f}Z"

        expected = {key: value and value[5:] if key != "state" else value for key, value in record["derived"].items()}

        assert expected == {
            "state": checkpoint.state.value,
            "updated_at": time(checkpoint.updated_at),
            "due_at": time(checkpoint.due_at),
        }

    def test_values_are_exact(self, record: dict[str, Any]) -> None:
        for fact in record.get("facts", []):
            value: Any = decoded(record["text"]).frozen_state
            for step in fact["path"]:
                value = value[step]
            match fact:
                case {"integer": digits}:
                    assert digits == str(value)
                    assert type(value) is int
                case {"hex": digits}:
                    assert digits == value.hex()
                case {"code_points": points}:
                    assert points == [ord(character) for character in value]
                case {"keys": keys}:
                    assert keys == list(value)

    def test_what_must_be_refused_is_refused(self, false_record: dict[str, Any]) -> None:
        if false_record["error"] == "newer_version":
            with pytest.raises(SchemaVersionError, match=false_record["found"].replace(".", r"\.")) as refusal:
                decoded(false_record["record"])
            assert false_record["found"] == refusal.value.found
        else:
            with pytest.raises(ValueError):  # noqa: PT011  # what a caller turns into CorruptCheckpointError
                decoded(false_record["record"])


class TestRows:
    def test_rows_decode_to_their_records_in_their_key_order(self, chain: dict[str, Any]) -> None:
        entries = read_all(chain)

        assert [row["sequence"] for row in chain["rows"]] == [entry.sequence for entry in entries]
        assert chain["records"] == [encoded(entry.checkpoint) for entry in entries]
        assert [row["write_id"] for row in chain["rows"]] == [entry.revision.write_id.hex() for entry in entries]

    def test_no_two_entries_share_a_container(self, chain: dict[str, Any]) -> None:
        entries = read_all(chain)
        for entry in entries:
            for value in entry.checkpoint.frozen_state.values():
                if isinstance(value, dict | list):
                    value.clear()
            entry.checkpoint.frozen_state["spoiled"] = True  # type: ignore[index]  # on purpose

        assert chain["records"] == [encoded(entry.checkpoint) for entry in read_all(chain)]

    def test_a_store_writes_these_very_rows(self, written_chain: dict[str, Any]) -> None:
        writer, thread_id = written_chain["writer"], written_chain["thread_id"]
        backend = MemoryBackend()

        async def write() -> tuple[Sequence[Row], Mapping[str, bytes]]:
            deltas = Deltas(full_every=writer["full_every"]) if "full_every" in writer else None
            offload = Offload(threshold=writer["threshold"]) if "threshold" in writer else None
            async with RowStore(backend, deltas=deltas, offload=offload) as store:
                for text in written_chain["records"]:
                    await store.save(decoded(text))
            return await backend.read(thread_id, 0, None), await backend.read_blobs(thread_id, written_chain["blobs"])

        rows, blobs = asyncio.run(write())

        assert [
            (row["sequence"], row["whole_at"], row["schema_version"], row["body"], row["envelope"])
            for row in written_chain["rows"]
        ] == [(row.sequence, row.whole_at, row.version, row.body.decode(), row.envelope.decode()) for row in rows]
        assert written_chain["blobs"] == {digest: content.decode() for digest, content in blobs.items()}

    def test_what_must_be_refused_is_refused(self, false_chain: dict[str, Any]) -> None:
        """Never skipped, never an earlier row instead; the error names the row."""
        place = f"{false_chain['thread_id']!r} #{false_chain['sequence']}"
        if false_chain["error"] == "newer_version":
            with pytest.raises(SchemaVersionError) as version_refusal:
                read_all(false_chain)
            assert false_chain["found"] == version_refusal.value.found
            message = str(version_refusal.value)
        else:
            with pytest.raises(CorruptCheckpointError) as refusal:
                read_all(false_chain)
            assert (false_chain["thread_id"], false_chain["sequence"]) == (
                refusal.value.thread_id,
                refusal.value.sequence,
            )
            message = str(refusal.value)
        for name in [place, *false_chain.get("names", [])]:
            assert name in message
