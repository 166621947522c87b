"""The text form of a revision: for an ETag, a form, a line of a log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata_core import InvalidInputError, Revision


def test_it_is_the_sequence_and_the_write_id() -> None:
    assert "4-9f86d081884c7d65" == str(Revision(4, bytes.fromhex("9f86d081884c7d65")))


@given(st.integers(0, 2**31 - 1), st.binary(min_size=8, max_size=8))
def test_what_is_written_can_be_read(sequence: int, write_id: bytes) -> None:
    revision = Revision(sequence, write_id)

    assert revision == Revision.parse(str(revision))


@pytest.mark.parametrize(
    "text",
    ["", "4", "4-", "-9f86d081884c7d65", "4-9f86d081884c7d6", "4-9f86d081884c7d655", "4-9F86D081884C7D65",
     " 4-9f86d081884c7d65", "4-9f86d081884c7d65\n", "04-9f86d081884c7d65", "-1-9f86d081884c7d65",
     "\u0664-9f86d081884c7d65", "2147483648-9f86d081884c7d65", '"4-9f86d081884c7d65"', None, 4,
     b"4-9f86d081884c7d65"],
)  # fmt: skip
def test_no_other_text_is_read(text: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^text: is not the text of a revision") as caught:
        Revision.parse(text)

    assert "text" == caught.value.argument
