"""Real servers for tests, without set-up, and faults on the wire to them.

Nothing here is imported with `strata_conformance` or its pytest plugin; the fixtures are in
``strata_conformance.servers.fixtures``, which a test run names with ``-p`` or ``pytest_plugins``.
"""

from strata_conformance.servers._cluster import RedisCluster
from strata_conformance.servers._database import Database
from strata_conformance.servers._errors import MissingServerError, ServerFailedError
from strata_conformance.servers._pgbouncer import PgBouncer
from strata_conformance.servers._postgres import PostgresServer
from strata_conformance.servers._postgres_client import PostgresClient
from strata_conformance.servers._redis import RedisServer, ValkeyServer
from strata_conformance.servers._s3 import MotoServer, S3Server, SwiftServer
from strata_conformance.servers._server import Server
from strata_conformance.servers.proxy import FaultProxy, Recording, Request, UnfiredWireFaultError, WireFault

__all__ = [
    "Database",
    "FaultProxy",
    "MissingServerError",
    "MotoServer",
    "PgBouncer",
    "PostgresClient",
    "PostgresServer",
    "Recording",
    "RedisCluster",
    "RedisServer",
    "Request",
    "S3Server",
    "Server",
    "ServerFailedError",
    "SwiftServer",
    "UnfiredWireFaultError",
    "ValkeyServer",
    "WireFault",
]
