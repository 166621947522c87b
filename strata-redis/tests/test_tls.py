"""``rediss://`` means that the server's certificate is checked."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from redis_support import Place, opened, save, with_backend

from strata_core.errors import InvalidInputError, StoreUnavailableError
from strata_redis import RedisOptions
from strata_redis._address import Target
from strata_redis._connection import Login
from strata_redis._node import node_maker, sentinel_maker


def login_of(url: str, options: RedisOptions, *, sentinel: bool = False) -> Login:
    target = Target.parse(url)
    make = sentinel_maker if sentinel else node_maker
    return make(target, options)(target.addresses[0])._pool._make()._login


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    """The certificate of the authority, as a file."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


@asynccontextmanager
async def encrypted(
    place: Place, certificate: trustme.LeafCert, trusted: trustme.CA | None = None
) -> AsyncGenerator[str]:
    """A port that speaks TLS in front of a server, whose builds for tests do not; its URL.

    Args:
        place: In front of whose server.
        certificate: What it shows.
        trusted: Who must have signed the certificate of a client; None: it asks for none.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    if trusted is not None:
        trusted.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    (server,) = place.servers
    host, port = server.host, server.port  # type: ignore[attr-defined]  # a server

    async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                sink.write(data)
        except OSError:
            pass
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(pipe(reader, behind_writer), pipe(behind_reader, writer))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"rediss://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0?prefix={place.prefix}"
    finally:
        listening.close()
        while len(asyncio.all_tasks()) > 1:  # those that still pipe what is being closed
            await asyncio.sleep(0.001)


def use(place: Place, certificate: trustme.LeafCert, trusted: trustme.CA | None = None, **options: Any) -> None:
    async def go() -> None:
        async with encrypted(place, certificate, trusted) as url, opened(url, **options) as backend:
            await backend.commit([save("t", body=b"x" * 300_000)])
            assert [b"x" * 300_000] == [row.body for row in await backend.read("t", None, None)]

    asyncio.run(go())


def test_a_server_with_the_right_certificate_is_used(place: Place, authority: trustme.CA, ca_file: str) -> None:
    use(place, authority.issue_cert("127.0.0.1"), ca_file=ca_file)


def test_a_server_that_asks_for_a_certificate_gets_it(
    valkey: Place, authority: trustme.CA, ca_file: str, tmp_path: Path
) -> None:
    own = authority.issue_cert("client@example.org")
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    own.cert_chain_pems[0].write_to_path(certificate)
    own.private_key_pem.write_to_path(key)

    use(
        valkey,
        authority.issue_cert("127.0.0.1"),
        authority,
        ca_file=ca_file,
        certificate_file=str(certificate),
        key_file=str(key),
    )


@pytest.mark.parametrize("wrong", ["signed by a stranger", "of another host"])
def test_a_server_with_a_wrong_certificate_is_told_nothing(
    valkey: Place, authority: trustme.CA, ca_file: str, wrong: str
) -> None:
    certificate = (
        trustme.CA().issue_cert("127.0.0.1") if wrong == "signed by a stranger" else authority.issue_cert("10.0.0.1")
    )

    async def go() -> None:
        async with (
            encrypted(valkey, certificate) as url,
            opened(url.replace("rediss://", "rediss://:secret@"), ca_file=ca_file),
        ):
            pass

    with pytest.raises(StoreUnavailableError, match="certificate verify failed") as caught:
        asyncio.run(go())

    assert not caught.value.maybe_written
    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
    assert "secret" not in str(caught.value) + repr(caught.value.__cause__)
    assert [] == valkey.names()


@pytest.mark.parametrize("sentinel", [False, True])
def test_certificates_and_host_names_are_checked(sentinel: bool) -> None:
    context = login_of("rediss://host", RedisOptions(), sentinel=sentinel).tls

    assert context is not None
    assert (ssl.CERT_REQUIRED, True) == (context.verify_mode, context.check_hostname)
    assert ssl.TLSVersion.TLSv1_2 == context.minimum_version


def test_without_it_nothing_is_encrypted() -> None:
    assert login_of("redis://host", RedisOptions()).tls is None


def test_who_to_be_is_said_first() -> None:
    login = login_of("redis://u:p@host/3", RedisOptions())

    assert [(b"AUTH", b"u", b"p"), (b"SELECT", b"3")] == login.commands()
    assert [(b"AUTH", b"p")] == login_of("redis://:p@host", RedisOptions()).commands()
    assert [] == login_of("redis://host", RedisOptions()).commands()
    assert "'p'" not in repr(login)


def test_sentinels_have_a_login_of_their_own() -> None:
    options = RedisOptions(sentinel_username="watcher", sentinel_password="other")
    login = login_of("redis://u:p@host/3?sentinel=m", options, sentinel=True)

    assert [(b"AUTH", b"watcher", b"other")] == login.commands()


@pytest.mark.parametrize("name", ["ca_file", "certificate_file"])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(InvalidInputError, match=rf"{name}: .*missing\.pem"):
        with_backend("rediss://127.0.0.1:1", lambda backend: backend.ping(), **{name: missing})


def test_a_server_without_tls_is_unavailable(valkey: Place) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        with_backend(
            valkey.url.replace("redis://", "rediss://"),
            lambda backend: backend.ping(),
            connect_timeout=timedelta(seconds=0.3),
        )
    assert not caught.value.maybe_written
