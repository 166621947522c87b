"""Starts servers, proves that they answer, tells where they are, and waits until it is killed."""

import json
import os
import sys
import time

from strata_conformance.servers import PostgresServer, RedisServer, ValkeyServer
from strata_conformance.servers._processes import children

if "nobody" in sys.argv and os.geteuid() == 0:
    "host".encode("idna")  # from now on no module can be imported that stands in a folder of root's
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

with PostgresServer(own=True) as postgres, ValkeyServer(own=True) as valkey, RedisServer(own=True) as redis:
    with postgres.fresh_database() as database:
        assert [("2",)] == database.execute("SELECT 1 + 1")
    assert b"PONG" == valkey.command("PING") == redis.command("PING")
    if "frozen" in sys.argv:
        postgres.pause()
        valkey.pause()
    servers = (postgres, valkey, redis)
    pids = [pid for server in servers for pid in (server.pid, *children(server.pid))]
    print(json.dumps({"pids": pids, "folders": [str(server.folder) for server in servers]}), flush=True)
    time.sleep(600)
