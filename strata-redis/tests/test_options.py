"""Options are checked when they are given, and keep a password to themselves."""

from datetime import timedelta
from typing import Any

import attrs
import pytest

from strata_core.errors import InvalidInputError
from strata_redis import RedisOptions


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prefix", ""),
        ("prefix", "a{b}"),
        ("prefix", "a b"),
        ("prefix", "a\0b"),
        ("prefix", "é" * 129),
        ("prefix", "\ud800"),
        ("prefix", b"bytes"),
        ("buckets", 0),
        ("buckets", 1025),
        ("buckets", True),
        ("buckets", "16"),
        ("pool_size", 0),
        ("pool_size", 1.5),
        ("connect_timeout", timedelta(0)),
        ("connect_timeout", 5),
        ("timeout", timedelta(hours=2)),
        ("timeout", None),
        ("replicas", -1),
        ("replicas", True),
        ("finished_thread_ttl", timedelta(0)),
        ("finished_thread_ttl", timedelta(microseconds=999)),
        ("finished_thread_ttl", timedelta(days=40_000)),
        ("finished_thread_ttl", 3600),
        ("ca_file", ""),
        ("key_file", b"key"),
        ("sentinel_password", ""),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        RedisOptions(**{name: value})

    assert name == caught.value.argument


def test_options_that_make_sense_are_kept() -> None:
    options = RedisOptions(
        prefix="orders/eu:1",
        buckets=1,
        pool_size=1,
        timeout=timedelta(hours=1),
        finished_thread_ttl=timedelta(milliseconds=1),
        ca_file="ca.pem",
    )

    assert ("orders/eu:1", 1, 1, "ca.pem") == (options.prefix, options.buckets, options.pool_size, options.ca_file)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        options.prefix = "b"  # type: ignore[misc]  # that is what is tested


def test_a_refused_or_shown_password_is_not_told() -> None:
    assert "hidden" not in repr(RedisOptions(sentinel_password="hidden"))
