"""Runs the engine's own tests on a store in Valkey: ``python strata-redis/tests/engine.py [arguments of pytest]``."""

import os
import subprocess
import sys
from pathlib import Path

from strata_conformance.servers import ValkeyServer

ROOT = Path(__file__).resolve().parents[2]
GRAPH = "strata-core/tests/graph"
ON_THE_SERVERS_CLOCK = [
    "test_races.py::TestLeases::test_the_lease_is_renewed_in_the_background_while_a_node_waits",
    "test_races.py::TestLeases::test_a_waiting_node_is_interrupted_when_the_lease_is_lost",
    "test_races.py::TestLeases::test_a_lease_that_has_run_out_when_its_acquire_is_answered_is_lost",
    "test_rows.py::TestEveryNode::test_a_run_holds_the_lease_while_its_nodes_run",
]
"""What lets leases expire by moving the clock of the test, which is not the one that judges them here."""


def main() -> int:
    """Return what pytest does; FOLDER is each test's own folder, and here its prefix."""
    left_out = [f"--deselect={GRAPH}/{test}" for test in ON_THE_SERVERS_CLOCK]
    with ValkeyServer(settings={"appendonly": "yes", "appendfsync": "no"}) as server:
        environment = os.environ | {"STRATA_TEST_STORE": f"{server.url}?prefix=FOLDER"}
        command = [sys.executable, "-m", "pytest", GRAPH, *left_out, *sys.argv[1:]]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
