"""Builds every distribution, installs each alone from the wheels as a user does, and uses it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USES = {
    "strata-host": [["strata", "--help"], ["strata", "plugins"]],
    "strata-blobs-s3": [
        [
            "python",
            "-c",
            "from strata_core.plugins import PluginSet; print(PluginSet().blobs('s3')[1].open('s3://bucket'))",
        ],
    ],
    "strata-conformance": [
        ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_memory.py", "-k", "reload or purge"]
    ],
}
"""What to do with a distribution that is installed alone."""
TOGETHER = ["strata-conformance", "strata-sqlite", "strata-host", "strata-folder"]
TOGETHER_USES = [
    ["strata", "plugins"],
    ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sqlite.py", "test_folder.py", "-k", "reload"],
]
"""With all of them installed in one place; of the suite a part, since the command below judges the whole of it."""
SUITE = '''"""A store against the suite, as its author runs it."""

import functools
import uuid

import pytest
import strata_core
from strata_conformance import StoreTests


class TestStore(StoreTests):
    in_memory = {in_memory}

    @pytest.fixture
    def open_store(self, tmp_path, clock):
        return functools.partial(strata_core.open_store, {url}, clock=clock)
'''
SUITES = {
    "memory": ('f"memory://{uuid.uuid4().hex}"', True),
    "sqlite": ('str(tmp_path / "threads.db")', False),
    "folder": ('f"folder:///{tmp_path}/threads"', False),
}
"""The file of each store: how a test names a fresh storage, and whether that is memory of the process."""
EXAMPLE = ROOT / "conformance" / "examples" / "strata-folder"
VERDICTS = {"strata-sqlite": ["sqlite:///{fast}/threads.db"]}
"""What the command of the suite judges where only core, the suite and this plugin are installed."""
CHECK = """import importlib, importlib.metadata as metadata, importlib.resources as resources
module = importlib.import_module({module!r})
distribution = metadata.distribution({name!r})
assert {version!r} == distribution.version, distribution.version
assert "site-packages" in module.__file__, module.__file__
assert (resources.files(module) / "py.typed").is_file(), "no py.typed"
assert any(path.name == "LICENSE" for path in distribution.files), "no LICENSE"
"""


def run(*command: str | Path, folder: Path) -> None:
    """Run a command, shown, in an environment that knows nothing of the checkout."""
    print("+", *[str(part).partition("\n")[0] for part in command], flush=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    subprocess.run([str(part) for part in command], cwd=folder, env=environment, check=True)


def distributions() -> dict[str, tuple[Path, str]]:
    """Return name to folder and version of every distribution."""
    found = {}
    for pyproject in sorted(ROOT.glob("*/pyproject.toml")):
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        found[project["name"]] = (pyproject.parent, project["version"])
    return found


def install(folder: Path, wheels: Path, *requirements: str, installer: str = "uv") -> Path:
    """Make a fresh environment in `folder`, install with uv or pip, check it, and return its `bin`.

    Whatever is not among the wheels is not found: `main` has fetched what the distributions say that they need.
    """
    venv.create(folder, clear=True)  # without a pip of its own, which takes longer than all the rest
    python = folder / "bin" / "python"
    source = ("--quiet", "--no-index", "--find-links", wheels)
    if installer == "pip":
        pip = (sys.executable, "-m", "pip", "--python", python)
        run(*pip, "install", *source, *requirements, folder=folder)
        run(*pip, "check", folder=folder)
    else:
        uv = (sys.executable, "-m", "uv", "--cache-dir", wheels.parent / "cache", "pip")
        run(*uv, "install", *source, "--python", python, *requirements, folder=folder)
        run(*uv, "check", "--python", python, folder=folder)
    return folder / "bin"


def main(folder: Path) -> int:
    """Build into and install below `folder`; return an exit code."""
    shutil.rmtree(folder, ignore_errors=True)
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    found = distributions()
    for path, _ in found.values():
        # A source distribution first, and the wheel from that: so both are complete.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", wheels, path, folder=folder)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", wheels, EXAMPLE, folder=folder)
    needed = [str(wheel) for wheel in wheels.glob("*.whl")]
    run(sys.executable, "-m", "pip", "download", "--quiet", "--prefer-binary", "--dest", wheels, *needed, folder=folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for store, (url, in_memory) in SUITES.items():
        text = SUITE.format(url=url, in_memory=in_memory)
        (elsewhere / f"test_{store}.py").write_text(text, encoding="utf-8")
    for name, (path, version) in found.items():
        bin_folder = install(folder / name, wheels, f"{name}=={version}")
        module = next(iter((path / "src").glob("*/__init__.py"))).parent.name
        check = CHECK.format(module=module, name=name, version=version)
        run(bin_folder / "python", "-c", check, folder=elsewhere)
        for command, *arguments in USES.get(name, []):
            run(bin_folder / command, *arguments, folder=elsewhere)
    pins = [f"{name}=={found[name][1]}" if name in found else name for name in TOGETHER]
    bin_folder = install(folder / "together", wheels, *pins, installer="pip")
    for command, *arguments in TOGETHER_USES:
        run(bin_folder / command, *arguments, folder=elsewhere)
    shm = Path("/dev/shm")  # noqa: S108  # where nothing waits for a disk: its own tests do
    for plugin, urls in VERDICTS.items():
        bin_folder = install(folder / f"verdict-{plugin}", wheels, pins[0], plugin)
        with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as fast:
            for url in urls:
                run(bin_folder / "strata-conformance", url.format(fast=fast), folder=elsewhere)
    print(f"{len(found)} distributions: each installs alone, is complete and works")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
