"""What a URL may say, and what it never tells."""

import pytest

from strata_core.errors import InvalidInputError
from strata_redis import RedisBackend, RedisOptions
from strata_redis._address import Address, Mode, Target


@pytest.mark.parametrize(
    ("url", "address", "database"),
    [
        ("redis://", "localhost:6379", 0),
        ("redis://localhost", "localhost:6379", 0),
        ("redis://localhost/", "localhost:6379", 0),
        ("redis://10.0.0.1:7000/5", "10.0.0.1:7000", 5),
        ("redis://db.example:7000?db=3", "db.example:7000", 3),
        ("redis://db.example/3?db=3", "db.example:6379", 3),
        ("redis://[::1]:7000/1", "[::1]:7000", 1),
        ("rediss://[fe80::1]", "[fe80::1]:6379", 0),
    ],
)
def test_a_url_names_a_server_and_a_database(url: str, address: str, database: int) -> None:
    target = Target.parse(url)

    assert (Mode.SINGLE, [address], database) == (
        target.mode,
        [str(each) for each in target.addresses],
        target.database,
    )
    assert url.startswith("rediss") == target.tls


@pytest.mark.parametrize(
    ("url", "mode", "addresses"),
    [
        ("redis://a:1,b,[::1]:3?cluster=true", Mode.CLUSTER, [Address("a", 1), Address("b", 6379), Address("::1", 3)]),
        ("redis://a/0?cluster=yes", Mode.CLUSTER, [Address("a", 6379)]),
        ("redis://a?cluster=false", Mode.SINGLE, [Address("a", 6379)]),
        ("redis://a,b:5/2?sentinel=orders", Mode.SENTINEL, [Address("a", 26379), Address("b", 5)]),
    ],
)
def test_a_url_names_a_cluster_or_sentinels(url: str, mode: Mode, addresses: list[Address]) -> None:
    target = Target.parse(url)

    assert (mode, tuple(addresses)) == (target.mode, target.addresses)
    assert ("orders" if mode is Mode.SENTINEL else "") == target.master


def test_user_and_password_may_be_escaped_and_are_never_shown() -> None:
    secret = "p@ss:/?#%"
    target = Target.parse("redis://us%40er:p%40ss%3A%2F%3F%23%25@host:1/0?prefix=orders")

    assert ("us@er", secret, "orders") == (target.username, target.password, target.prefix)
    assert "redis://us%40er:***@host:1/0?prefix=orders" == target.shown
    for shown in (repr(target), repr(RedisBackend("redis://u:p%40ss%3A%2F%3F%23%25@host"))):
        assert secret not in shown
        assert "p%40ss" not in shown
    assert (None, "pw") == (Target.parse("redis://:pw@host").username, Target.parse("redis://:pw@host").password)
    assert ("u", None) == (Target.parse("redis://u@host").username, Target.parse("redis://u@host").password)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://host", "must begin with redis:// or rediss://"),
        ("redis:host", "must begin with"),
        ("redis://host:port", "a host or port that is none"),
        ("redis://host:99999", "a host or port that is none"),
        ("redis://a,,b?cluster=true", "a host or port that is none"),
        ("redis://a,b", "several servers"),
        ("redis://host/orders", "by its number"),
        ("redis://host/1?db=2", "by its number"),
        pytest.param(f"redis://host/{'9' * 5_000}", "by its number", id="a number of 5,000 digits"),
        ("redis://host/-1", "by its number"),
        ("redis://host/1?cluster=true", "a cluster has only 0"),
        ("redis://host?cluster=maybe", "must be true or false"),
        ("redis://host?cluster=true&cluster=false", "each once"),
        ("redis://host?sentinel=", "must name a master"),
        ("redis://host?sentinel=a&cluster=true", "goes without cluster=true"),
        ("redis://host?timeout=5", "RedisOptions"),
        ("redis://host?cluster", "name=value"),
        ("redis://host#part", "fragment"),
        ("redis://host?prefix=a%7Bb", "without braces"),
        ("redis://host?prefix=", "at least one character"),
        ("redis://u:%ff@host", "not UTF-8"),
    ],
)
def test_a_url_that_nobody_understands_is_refused(url: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Target.parse(url)


@pytest.mark.parametrize("url", ["redis://u:secret@host?what=1", "redis://u:secret@host:x", "redis://:secret@a,b"])
def test_a_refused_url_is_told_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Target.parse(url)

    assert "secret" not in str(caught.value)


def test_the_prefix_comes_from_the_url_or_the_options_but_not_from_both() -> None:
    assert "a" == RedisBackend("redis://host?prefix=a")._options.prefix
    assert "a" == RedisBackend("redis://host", options=RedisOptions(prefix="a"))._options.prefix
    assert "a" == RedisBackend("redis://host?prefix=a", options=RedisOptions(prefix="a"))._options.prefix
    assert "strata" == RedisBackend("redis://host")._options.prefix
    with pytest.raises(InvalidInputError, match="has the prefix 'b', and the URL 'a'"):
        RedisBackend("redis://host?prefix=a", options=RedisOptions(prefix="b"))
