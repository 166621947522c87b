"""Services that speak the protocol of S3, for tests."""

from __future__ import annotations

import http.client
import importlib.util
import os
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from strata_conformance.servers._binaries import missing_wheel
from strata_conformance.servers._errors import ServerFailedError
from strata_conformance.servers._server import Protocol, Server

__all__ = ["MotoServer", "S3Server", "SwiftServer"]


class S3Server(Server):
    """What `MotoServer` and `SwiftServer` have in common; see `Server`.

    Attributes:
        access_key: Who may do everything.
        secret_key: The key that goes with it.
        region: Where the service says that it is.
    """

    protocol: ClassVar[Protocol] = "raw"
    access_key: ClassVar[str]
    secret_key: ClassVar[str]
    region: ClassVar[str] = "us-east-1"
    _module: ClassVar[str]
    _extra: ClassVar[str]

    @property
    def url(self) -> str:
        """The endpoint, as clients of S3 take it."""
        return f"http://{self.host}:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which a client finds its credentials and region, and nothing else of this machine."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    @classmethod
    def find(cls) -> None:
        """Make sure that it is installed.

        Raises:
            MissingServerError: It is not.
        """
        if importlib.util.find_spec(cls._module) is None:
            raise missing_wheel(cls.product, cls._extra)

    def _prepare(self) -> None:
        self.find()

    @abstractmethod
    def _command(self) -> Sequence[str | Path]: ...

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):  # not there yet
            return False
        finally:
            connection.close()
        return True

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in super()._environment().items() if not name.startswith("AWS_")}
        return kept | {"PYTHONWARNINGS": "ignore"}


class MotoServer(S3Server):
    """The server of moto for tests; see `Server`.

        with MotoServer() as server:
            client = boto3.client("s3", endpoint_url=server.url, ...)

    Fast, and lenient: it takes wrong credentials and wrong checksums.  It keeps everything in its memory, so it loses
    everything when it stops.
    """

    product = "moto"
    variable = None
    access_key = "testing"
    secret_key = "testing"  # noqa: S105  # it takes any
    _module = "moto"
    _extra = "s3-server"

    def __init__(self) -> None:
        super().__init__(own=True)

    def _command(self) -> Sequence[str | Path]:
        return [sys.executable, "-P", "-m", "moto.server", "-H", self.host, "-p", str(self.port)]


class SwiftServer(S3Server):
    """OpenStack Swift with its S3 API for tests, its parts in one process; see `Server`.

        with SwiftServer() as server:
            client = boto3.client("s3", endpoint_url=server.url, ...)

    It was not written for tests: it checks signatures and checksums.  Its folder must be on a file system with user
    attributes, such as ext4, xfs or a recent tmpfs.
    """

    product = "Swift"
    variable = None
    access_key = "test:tester"
    secret_key = "testing"  # noqa: S105  # that of its only user
    _module = "swift"
    _extra = "swift-server"

    def __init__(self) -> None:
        super().__init__(own=True)

    def _prepare(self) -> None:
        super()._prepare()
        try:
            os.setxattr(self.folder, b"user.strata", b"1")
        except (AttributeError, OSError):
            message = f"{self.folder} is on a file system without user attributes, which Swift needs: set TMPDIR"
            raise ServerFailedError(message) from None

    def _command(self) -> Sequence[str | Path]:
        # By its path: what the package of this module imports must not be there when the program patches sockets.
        program = Path(__file__).with_name("_swift_main.py")
        return [sys.executable, "-P", program, self.folder, self.host, str(self.port)]
