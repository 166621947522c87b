"""The services that these tests run on."""

from __future__ import annotations

import importlib.util

import pytest
from s3_support import raw_client

from strata_conformance.servers import MissingServerError, MotoServer, S3Server, SwiftServer
from strata_conformance.servers.fixtures import server_or_outcome


@pytest.mark.soak
def test_what_swift_acknowledged_is_there_when_it_was_killed_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with server_or_outcome(SwiftServer()) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        client = raw_client(server.url)
        client.create_bucket(Bucket="bucket")
        client.put_object(Bucket="bucket", Key="a", Body=b"1")
        url, folder = server.url, server.folder
        server.kill()
        assert not server.is_running
        server.start()

        assert url == server.url
        assert b"1" == client.get_object(Bucket="bucket", Key="a")["Body"].read()
        client.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("kind", "line"), [(MotoServer, "pip install moto[server]==5.2.5"), (SwiftServer, "pip install swift==2.38.3")]
)
def test_a_service_that_is_not_installed_says_how_to_install_it(
    kind: type[S3Server], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingServerError) as caught:
        kind().start()

    assert line in str(caught.value)
