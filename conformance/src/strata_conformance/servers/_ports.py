"""Free ports on the loopback interface."""

from __future__ import annotations

import random
import socket
from typing import Final

__all__ = ["HOST", "free_port"]

HOST: Final = "127.0.0.1"
# Below the ports that systems give to outgoing connections: a client that tries again and again to reach a server that
# is down would else meet itself, and somebody's connection could take the port while the server is away.
_PORTS: Final = range(15_000, 30_000)
_BUS: Final = 10_000
"""Where a cluster node listens for its peers, above its own port."""


def free_port(*, with_bus: bool = False) -> int:
    """Return a port on which nothing listens.

    Args:
        with_bus: Also want the port 10,000 above, where a node of a Redis cluster meets its peers.

    Raises:
        OSError: None was free.
    """
    for port in random.sample(_PORTS, 200):
        if _is_free(port) and not (with_bus and not _is_free(port + _BUS)):
            return port
    message = f"no free port between {_PORTS.start} and {_PORTS.stop} on {HOST}"
    raise OSError(message)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: what is closing does not count
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
