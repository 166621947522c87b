"""JSON text is exact in both directions, or refused with its path."""

from __future__ import annotations

import collections
import decimal
import enum
import json
import math
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_core.codec import copy_json, dump_json, load_json
from strata_core.codec._json import _Quoted
from strata_core.errors import InvalidInputError

text = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


def _same(one: Any, two: Any) -> bool:
    """Equal in value and in type, so that 1 is not True and 0.0 not -0.0."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return list(one) == list(two) and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, float):
        return repr(one) == repr(two)
    return bool(one == two)


@given(values)
def test_what_is_written_reads_back_equal_in_value_type_and_order(value):
    assert _same(value, load_json(dump_json(value)))


@given(values)
def test_the_text_is_that_of_the_standard_library_in_its_compact_form(value):
    assert json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() == dump_json(value)


@given(values)
def test_a_copy_is_equal_and_shares_no_container(value):
    def containers(item):
        if isinstance(item, dict | list):
            yield id(item)
            for child in item.values() if isinstance(item, dict) else item:
                yield from containers(child)

    copy = copy_json(value)

    assert _same(value, copy)
    assert not set(containers(value)) & set(containers(copy))


class Colour(enum.StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "state"),
        ({"a": math.inf}, "state.a"),
        ({"items": [0, {"price": -math.inf}]}, "state.items[1].price"),
        ({"a": {"b": "\ud800"}}, "state.a.b"),
        ("\udc81", "state"),
        ({"a": {"\ud800": 1}}, "state.a"),
        ({1: "x"}, "state"),
        ({"a": {None: 1}}, "state.a"),
        ({"a": {True: 1}}, "state.a"),
        ({"a": (1, 2)}, "state.a"),
        ({"a": {1, 2}}, "state.a"),
        ({"a": b"x"}, "state.a"),
        ({"a": decimal.Decimal("1.50")}, "state.a"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "state.a"),
        ({"a": collections.OrderedDict()}, "state.a"),
        ({"a": collections.defaultdict(list)}, "state.a"),
        ({"a": collections.Counter("aab")}, "state.a"),
        ({"a": Colour.RED}, "state.a"),
        ({"a": Text("x")}, "state.a"),
        ({"a": Number.ONE}, "state.a"),
        ({"a": [object()]}, "state.a[0]"),
        ({"a": 10**4300}, "state.a"),
        ({"a": [-(10**4300)]}, "state.a[0]"),
        (10**5000, "state"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_an_exact_json_form_is_refused_with_its_path(value, path):
    with pytest.raises(InvalidInputError) as caught:
        dump_json(value)

    assert path == caught.value.argument


@pytest.mark.parametrize("number", [10**4300 - 1, -(10**4300) + 1, 2**64, -(2**63) - 1])
def test_an_int_of_up_to_4300_digits_is_exact(number):
    assert {"n": number} == load_json(dump_json({"n": number}))


def _nested(depth: int, kind: str) -> object:
    value: object = []
    for _ in range(depth - 1):
        value = [value] if kind == "list" else {"k": value}
    return value


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_nesting_reaches_200_and_no_further(kind):
    deep = _nested(200, kind)

    assert deep == load_json(dump_json(deep))
    with pytest.raises(InvalidInputError, match="nested more than 200 deep"):
        dump_json(_nested(201, kind))


def test_a_value_that_contains_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)

    with pytest.raises(InvalidInputError, match="nested more than 200 deep"):
        dump_json(loop)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"nul", b"{", b'{"a":1}x', b"NaN",
        b"[Infinity]", b"[-Infinity]", b"1e999", b"-1e999", b'"\\ud800"', b'{"\\udfff":1}',
        b'"\xff"', b"\xef\xbb\xbf{}", b"[" * 100_000, b"9" * 4301, '"x"'.encode("utf-16"), b"\x80\x04K\x01.", b'"\x01"',
    ],
    ids=lambda raw: repr(raw[:20]),
)  # fmt: skip
def test_text_that_is_no_strict_json_is_a_value_error(raw):
    with pytest.raises(ValueError):  # noqa: PT011  # the caller adds the row and the words
        load_json(raw)


def test_escaped_pairs_and_nul_are_text():
    assert "\U0001f600 \0" == load_json(b'"\\ud83d\\ude00 \\u0000"')


@pytest.mark.parametrize("limit", [0, 640, 100_000])
def test_the_limit_of_4300_digits_does_not_depend_on_the_interpreters_own(limit):
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        with pytest.raises(InvalidInputError):
            dump_json({"a": [10**4300]})
    finally:
        sys.set_int_max_str_digits(before)


def _doubling(levels: int) -> object:
    value: object = []
    for _ in range(levels):
        value = [value, value]
    return value


def test_a_value_that_contains_itself_twice_is_refused_at_once():
    loop: list[object] = []
    loop += [loop, loop]

    with pytest.raises(InvalidInputError, match="10,000,000 lists and dicts"):
        dump_json({"a": loop})


def test_a_small_value_whose_text_would_never_end_is_refused_at_once():
    with pytest.raises(InvalidInputError, match="10,000,000 lists and dicts"):
        dump_json(_doubling(150))


def test_a_wide_value_is_walked_to_its_end():
    wide = {"rows": [[{"n": n}] for n in range(30_000)]}

    assert wide == load_json(dump_json(wide))
    with pytest.raises(InvalidInputError) as caught:
        dump_json({"rows": [[{"n": n}] for n in range(30_000)] + [[{"n": (1,)}]]})
    assert "state.rows[30000][0].n" == caught.value.argument
    assert dump_json(_doubling(12)) == dump_json(load_json(dump_json(_doubling(12))))


class TestTextsThatWereWrittenLately:
    def test_they_are_written_as_at_the_first_time(self):
        values = ["plain", 'with "quotes"', "line\nend", "\x00", "ä\u2028", "x" * 3000, ""]
        expected = [json.dumps({text: [text]}, ensure_ascii=False, separators=(",", ":")).encode() for text in values]

        assert expected == [dump_json({text: [text]}) for text in values]
        assert expected == [dump_json({text: [text]}) for text in values]

    def test_what_is_kept_of_them_is_bounded(self, monkeypatch):
        kept = _Quoted()
        monkeypatch.setattr(_Quoted, "most", 10 * (_Quoted.each + 2 * 8))

        texts = [f"{number:08}" for number in range(1000)]

        assert [f'"{text}"' for text in texts] == [kept[text] for text in texts]
        assert 0 < len(kept) <= 10
        assert kept.keys() <= set(texts[-10:])

    def test_very_long_ones_are_not_kept(self, monkeypatch):
        kept = _Quoted()
        monkeypatch.setattr(_Quoted, "longest", 8)

        assert ('"' + "x" * 9 + '"', '"' + "x" * 8 + '"') == (kept["x" * 9], kept["x" * 8])
        assert {"x" * 8} == kept.keys()
