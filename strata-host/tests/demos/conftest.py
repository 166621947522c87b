"""Demos, run as their READMEs say."""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

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

    def call(self, *options: str, fails: str = "") -> str:
        """Run the script of the command in this process, which costs a tenth of another one, and return what it prints.

        Args:
            options: Options for the demo.
            fails: How what it says at its end begins when it fails; it must not fail where this is empty.
        """
        script = self.command()[-1]
        shown, before, said = io.StringIO(), set(sys.modules), ""
        with (
            patch.object(sys, "argv", [script, *options]),
            patch.object(sys, "path", [str(self.folder), *sys.path]),
            redirect_stdout(shown),
        ):
            try:
                runpy.run_path(script, run_name="__main__")
            except SystemExit as done:
                said = str(done.code)
                print(said, file=sys.stderr)  # as the interpreter would
        for name in set(sys.modules) - before:
            if str(self.folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]  # the next demo may have one of this name

        assert said.startswith(fails), said
        assert bool(fails) == bool(said), said
        return shown.getvalue()


@pytest.fixture
def demo() -> Callable[[str], Demo]:
    return lambda name: Demo(DEMOS / name)
