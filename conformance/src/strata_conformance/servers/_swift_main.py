"""Runs a whole Swift with its S3 API in one process; a program: ``python _swift_main.py FOLDER HOST PORT``.

A Swift is four servers that know each other by files.  In production they are processes on many machines; here they
share one, as in Swift's own tests, which spares three starts and imports.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from swift.common.concurrency import listen, monkey_patch, spawn, wsgi

monkey_patch()  # before anything else takes a socket or a lock that blocks

from swift.common.http_protocol import SwiftHttpProtocol  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.utils import NullLogger, set_swift_dir  # noqa: E402
from swift.common.wsgi import loadapp  # noqa: E402

_STORAGES: Final = ("account", "container", "object")
_PIPELINE: Final = ("catch_errors", "s3api", "tempauth", "proxy-server")
_CLUSTER: Final = """
[swift-hash]
swift_hash_path_prefix = strata
swift_hash_path_suffix = strata

[storage-policy:0]
name = one
default = yes
"""
_STORAGE: Final = """
[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_level = WARNING

[pipeline:main]
pipeline = {name}-server

[app:{name}-server]
use = egg:swift#{name}
"""
_PROXY: Final = """
[DEFAULT]
swift_dir = {folder}
log_level = WARNING

[pipeline:main]
pipeline = {pipeline}

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true

[filter:catch_errors]
use = egg:swift#catch_errors

[filter:s3api]
use = egg:swift#s3api
location = us-east-1
auth_pipeline_check = false
allow_multipart_uploads = false

[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
"""


def main(folder: Path, host: str, port: int) -> None:
    """Serve until the process is ended."""
    (folder / "devices" / "disk").mkdir(parents=True, exist_ok=True)
    (folder / "swift.conf").write_text(_CLUSTER)
    set_swift_dir(str(folder))
    servers = []
    for name in _STORAGES:
        sock = listen((host, 0))
        _ring(name, host, sock.getsockname()[1], folder)
        servers.append((name, sock, _STORAGE.format(folder=folder, name=name)))
    proxy = _PROXY.format(folder=folder, pipeline=" ".join(_PIPELINE))
    servers.append(("proxy", listen((host, port)), proxy))
    threads = []
    for name, sock, text in servers:
        path = folder / f"{name}.conf"
        path.write_text(text)
        threads.append(
            spawn(
                wsgi.server,
                sock,
                loadapp(str(path), global_conf={"log_name": name}),
                NullLogger(),
                protocol=SwiftHttpProtocol,
                capitalize_response_headers=False,  # clients of S3 look for "ETag"
            )
        )
    for thread in threads:
        thread.wait()


def _ring(name: str, host: str, port: int, folder: Path) -> None:
    """Write down that everything is on one disk behind one port."""
    builder = RingBuilder(1, 1, 0)
    place = {"ip": host, "port": port, "replication_ip": host, "replication_port": port}
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "device": "disk", "weight": 1, "meta": "", **place})
    builder.rebalance()
    builder.get_ring().save(str(folder / f"{name}.ring.gz"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
