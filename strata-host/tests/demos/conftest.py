"""Demos, run as their READMEs say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

TESTS = Path(__file__).parents[1]
DEMOS = TESTS.parent / "demos"


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demos find the test store too."""
    paths = [str(TESTS / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@attrs.frozen
class Demo:
    """One folder of the demos."""

    folder: Path

    def readme(self, language: str) -> str:
        """Return the first block of the README in this language."""
        text = (self.folder / "README.md").read_text(encoding="utf-8")
        found = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert found is not None
        return found[1]

    def command(self) -> list[str]:
        """Return the last command of the README's first block, for the interpreter that runs the tests."""
        python, script = shlex.split(self.readme("sh").splitlines()[-1])
        assert python == "python"
        return [sys.executable, "-W", "error", str(DEMOS / Path(script).relative_to("strata-host/demos"))]

    def run(self, *options: str, code: int = 0, before: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command and check its exit code.

        Args:
            options: Options for the demo.
            code: The exit code to expect.
            before: Python to run first, in the process of the demo.
        """
        *python, script = self.command()
        if before:
            run = f"import runpy, sys\nsys.argv.pop(0)\nsys.path[0] = {str(self.folder)!r}\n"
            run += "runpy.run_path(sys.argv[0], run_name='__main__')"
            python += ["-c", f"{before}\n{run}"]
        done = subprocess.run([*python, script, *options], capture_output=True, encoding="utf-8", check=False)

        assert code == done.returncode, done.stdout + done.stderr
        return done


@pytest.fixture
def demo() -> Callable[[str], Demo]:
    return lambda name: Demo(DEMOS / name)
