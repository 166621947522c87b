"""Text from a store cannot act on a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_host.cli._text import argument, json_text, one_line, phrase, word

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def _is_harmless(text: str) -> bool:
    return all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in text)


@given(ANY_TEXT)
def test_a_phrase_is_harmless_and_says_which_text_it_is(text):
    shown = phrase(text)

    assert _is_harmless(shown)
    assert text == (json.loads(shown) if shown.startswith('"') else shown)


@given(ANY_TEXT)
def test_a_word_is_harmless_unambiguous_and_one_word(text):
    shown = word(text)

    assert _is_harmless(shown)
    assert shown != "-"
    assert shown.startswith('"') or " " not in shown
    assert text == (json.loads(shown) if shown.startswith('"') else shown)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | ANY_TEXT,
        lambda v: st.lists(v) | st.dictionaries(ANY_TEXT, v),
        max_leaves=8,
    )
)
def test_json_for_people_is_harmless_and_the_same_value(value):
    shown = json_text(value, indent=2)

    assert _is_harmless(shown.replace("\n", ""))
    assert value == json.loads(shown)


@given(ANY_TEXT)
def test_a_message_stays_on_one_line(text):
    assert _is_harmless(one_line(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("order-1", "order-1"),
        ("", '""'),
        ("-", '"-"'),
        ("two words", '"two words"'),
        ("\x1b[2J", '"\\u001b[2J"'),
        ("a\x9b31m", '"a\\u009b31m"'),
        ("a\x7f", '"a\\u007f"'),
        ("\u202egnp.exe", '"\\u202egnp.exe"'),
        ("\ud800", '"\\ud800"'),
        ("C:\\new", '"C:\\\\new"'),
        ("\xa0", '"\\u00a0"'),
        ("日本", "日本"),
    ],
)
def test_a_word_shows_what_it_is(text, shown):
    assert shown == word(text)


def test_no_name_is_a_dash():
    assert word(None) == "-"


def test_an_argument_can_be_pasted_into_a_shell():
    assert argument("a b;c") == "'a b;c'"
    assert argument("abc_-") == "abc_-"
