"""The golden vectors agree with the schema and with themselves; no code of ours reads or writes them here."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond a double")
    return number


def parse(text: str) -> Any:
    """Read JSON text with the standard library, with the refusals of state-5."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def validate(schema: dict[str, Any], name: str, value: Any) -> None:
    """Hold a value against one of the schema's `$defs`."""
    registry: Registry[Any] = Registry().with_resource(schema["$id"], Resource.from_contents(schema))
    Draft202012Validator({"$ref": f"{schema['$id']}#/$defs/{name}"}, registry=registry).validate(value)


def body_of(version: str) -> str:
    minor = int(version.split(".")[1])
    return "body_1_7" if minor < 8 else f"body_1_{minor}"


def fold(rows: list[dict[str, Any]], blobs: dict[str, str]) -> list[dict[str, Any]]:
    """Decode valid rows as README.md says, as plainly as possible: an oracle for the vectors."""
    state: dict[str, Any] = {}
    digests: dict[str, str] = {}
    decoded = []
    for row in rows:
        body = parse(row["body"])
        if body_of(row["schema_version"]) == "body_1_7":
            state, digests = dict(body), {}
        elif "whole" in body:
            state, digests = dict(body["whole"]), dict(body["blobs"])
        else:
            for key in body["unset"]:
                del state[key]
                digests.pop(key, None)
            for key, value in body["set"].items():
                state[key] = value
                digests.pop(key, None)
            digests.update(body.get("blobs", {}))
        decoded.append({key: parse(blobs[digests[key]]) if key in digests else value for key, value in state.items()})
    return decoded


class TestRecords:
    def test_text_and_its_variants_fit_the_schema(self, records_vector: dict[str, Any], schema: dict[str, Any]) -> None:
        for text in [records_vector["text"], *records_vector.get("also", [])]:
            Draft202012Validator(schema).validate(parse(text))

    def test_text_is_compact_and_in_the_schema_s_key_order(
        self, records_vector: dict[str, Any], schema: dict[str, Any]
    ) -> None:
        record = parse(records_vector["text"])

        assert compact(record) == records_vector["text"]
        assert [key for key in schema["properties"] if key in record] == list(record)

    def test_variants_say_the_same(self, records_vector: dict[str, Any]) -> None:
        def essence(text: str) -> str:
            record = {
                key: value for key, value in parse(text).items() if value not in (None, {}) or key[:6] == "frozen"
            }
            for name in ("decision", "wait"):
                if name in record:
                    record[name] = {key: value for key, value in record[name].items() if value not in (None, {})}
            return json.dumps({**record, "schema_version": "1.7.0"}, sort_keys=True)

        texts = [records_vector["text"], *records_vector.get("also", [])]

        assert {essence(texts[0])} == {essence(text) for text in texts}

    def test_facts_are_true(self, records_vector: dict[str, Any]) -> None:
        for fact in records_vector.get("facts", []):
            value = parse(records_vector["text"])["frozen_state"]
            for step in fact["path"]:
                value = value[step]
            if "integer" in fact:
                assert int(fact["integer"]) == value
                assert type(value) is int
            if "hex" in fact:
                assert fact["hex"] == value.hex()
            if "code_points" in fact:
                assert fact["code_points"] == [ord(character) for character in value]
            if "keys" in fact:
                assert fact["keys"] == list(value)

    def test_what_a_listing_says_follows_from_the_record(self, records_vector: dict[str, Any]) -> None:
        record = parse(records_vector["text"])
        state = "resumed" if "resumed_at" in record else record["status"]

        assert {
            "state": state,
            "updated_at": max(record["created_at"], record.get("resumed_at", "")),
            "due_at": record.get("wait", {}).get("due_at") if state == "interrupted" else None,
        } == records_vector["derived"]


class TestRows:
    def test_rows_fit_the_schema(self, rows_vector: dict[str, Any], schema: dict[str, Any]) -> None:
        for row in rows_vector["rows"]:
            envelope = parse(row["envelope"])
            validate(schema, "row", row)
            validate(schema, "envelope", envelope)
            validate(schema, body_of(row["schema_version"]), parse(row["body"]))
            assert row["schema_version"] == envelope["schema_version"]
            assert rows_vector["thread_id"] == envelope["thread_id"]

    def test_records_fit_the_schema(self, rows_vector: dict[str, Any], schema: dict[str, Any]) -> None:
        assert len(rows_vector["rows"]) == len(rows_vector["records"])
        for text in rows_vector["records"]:
            Draft202012Validator(schema).validate(parse(text))
            assert compact(parse(text)) == text

    def test_rows_decode_to_the_records(self, rows_vector: dict[str, Any]) -> None:
        states = fold(rows_vector["rows"], rows_vector["blobs"])
        for row, state, text in zip(rows_vector["rows"], states, rows_vector["records"], strict=True):
            record = parse(text)
            assert compact(state) == compact(record.pop("frozen_state"))
            assert parse(row["envelope"]) | {"schema_version": "1.7.0"} == record

    def test_digests_are_true_and_used(self, rows_vector: dict[str, Any]) -> None:
        used = {
            digest
            for row in rows_vector["rows"]
            if body_of(row["schema_version"]) == "body_1_9"
            for digest in parse(row["body"])["blobs"].values()
        }

        assert used == set(rows_vector["blobs"])
        for digest, content in rows_vector["blobs"].items():
            assert f"sha256:{hashlib.sha256(content.encode()).hexdigest()}" == digest

    def test_a_row_has_the_lowest_version_that_covers_it(self, rows_vector: dict[str, Any]) -> None:
        for row in rows_vector["rows"]:
            whole = row["sequence"] == row["whole_at"]
            kind = body_of(row["schema_version"])
            assert whole or kind != "body_1_7"
            assert not whole or kind != "body_1_8"
            assert whole or '"status":"running"' in row["envelope"]


class TestInvalid:
    def test_the_schema_refuses_what_it_can_see(self, invalid_record: dict[str, Any], schema: dict[str, Any]) -> None:
        try:
            accepted = Draft202012Validator(schema).is_valid(parse(invalid_record["record"]))
        except ValueError:
            accepted = False

        assert invalid_record.get("schema_accepts", False) == accepted

    def test_each_says_how_it_is_refused(self, invalid_vector: dict[str, Any]) -> None:
        assert invalid_vector["error"] in {"corrupt", "newer_version"}
        assert (invalid_vector["error"] == "newer_version") == ("found" in invalid_vector)
        assert ("record" in invalid_vector) != ("rows" in invalid_vector)
        if "rows" in invalid_vector:
            assert invalid_vector["sequence"] in {row["sequence"] for row in invalid_vector["rows"]}
