"""Answers are put together from whatever pieces they come in, and nothing else is taken for one."""

import pytest

from strata_redis._calls import ServerError
from strata_redis._resp import Reader, pack

SAID = (
    b"+OK\r\n:-5\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n-NOSCRIPT No matching script\r\n"
    b"*3\r\n$4\r\na\r\nb\r\n*2\r\n:1\r\n*1\r\n-ERR x\r\n$2\r\n\r\n\r\n"
)


def shown(answer: object) -> object:
    if isinstance(answer, ServerError):
        return answer.code, str(answer)
    return [shown(each) for each in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, len(SAID)])
def test_answers_come_in_pieces_of_any_size(size: int) -> None:
    reader = Reader()
    answers = [answer for at in range(0, len(SAID), size) for answer in reader.feed(SAID[at : at + size])]

    missing = ("NOSCRIPT", "NOSCRIPT No matching script")
    nested = [b"a\r\nb", [1, [("ERR", "ERR x")]], b"\r\n"]
    assert [b"OK", -5, None, None, [], b"", missing, nested] == shown(answers)
    assert {bytes} == {type(answer) for answer in answers if isinstance(answer, bytes | bytearray)}


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$x\r\n",
        b"*1\r\n?\r\n",
        b":\r\n",
        b"\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*-1\r\n",  # version 3 speaks out of turn; this is 2
        b"%1\r\n:1\r\n:2\r\n",
        b"#f\r\n",
        b"*1\r\n" * 100_000,
    ],
)
def test_what_is_no_answer_is_refused(said: bytes) -> None:
    reader = Reader()

    assert [b"OK"] == reader.feed(b"+OK\r\n" + said)
    assert reader.broken


def test_a_value_that_has_not_come_whole_is_no_answer_yet() -> None:
    reader = Reader()

    assert [] == reader.feed(b"$1000000000000\r\nabc")
    assert [] == reader.feed(b"\r\n+OK\r\n")
    assert reader.is_within


def test_commands_are_arrays_of_what_they_consist_of() -> None:
    assert b"*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n*1\r\n$4\r\nPING\r\n" == pack([(b"GET", b"\r\n"), (b"PING",)])
