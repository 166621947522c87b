"""``rediss://`` means that the server's certificate is checked."""

import ssl
from pathlib import Path

import pytest
from redis.asyncio.connection import Connection, SSLConnection
from redis_support import Place, with_backend

from strata_core.errors import StoreUnavailableError
from strata_redis import RedisOptions
from strata_redis._address import Target
from strata_redis._node import node_maker, sentinel_maker


def connection_of(url: str, options: RedisOptions, *, sentinel: bool = False) -> Connection:
    target = Target.parse(url)
    make = sentinel_maker if sentinel else node_maker
    return make(target, options)(target.addresses[0])._pool._make()


@pytest.mark.parametrize("sentinel", [False, True])
def test_certificates_and_host_names_are_checked(sentinel: bool) -> None:
    options = RedisOptions(ca_file="ca.pem", certificate_file="own.pem", key_file="own.key")
    connection = connection_of("rediss://host", options, sentinel=sentinel)

    assert isinstance(connection, SSLConnection)
    assert (ssl.CERT_REQUIRED, True) == (connection.cert_reqs, connection.check_hostname)
    assert ("ca.pem", "own.pem", "own.key") == (connection.ca_certs, connection.certfile, connection.keyfile)
    assert ssl.TLSVersion.TLSv1_2 == connection.min_version


def test_without_it_nothing_is_encrypted() -> None:
    assert Connection is type(connection_of("redis://host", RedisOptions()))


@pytest.mark.parametrize("url", ["redis://u:p@host/3", "rediss://u:p@host/3"])
def test_the_driver_repeats_nothing(url: str) -> None:
    connection = connection_of(url, RedisOptions())

    assert 0 == connection.retry.get_retries()
    assert (3, "u", "p", 2) == (connection.db, connection.username, connection.password, connection.protocol)


def test_sentinels_have_a_login_of_their_own() -> None:
    options = RedisOptions(sentinel_username="watcher", sentinel_password="other")
    connection = connection_of("redis://u:p@host/3?sentinel=m", options, sentinel=True)

    assert (0, "watcher", "other") == (connection.db, connection.username, connection.password)


def test_a_server_without_tls_or_a_missing_certificate_is_unavailable(valkey: Place, tmp_path: Path) -> None:
    url = valkey.url.replace("redis://", "rediss://")
    for options in ({}, {"ca_file": str(tmp_path / "missing.pem")}):
        with pytest.raises(StoreUnavailableError) as caught:
            with_backend(url, lambda backend: backend.ping(), **options)
        assert not caught.value.maybe_written
