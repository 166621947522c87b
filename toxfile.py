"""Lets tox make its environments with uv, which takes a second each, or with pip where uv cannot reach an index.

uv does not read the configuration of pip.  Where packages come from a mirror that only pip knows of, or the cache of uv
cannot be written, everything works as it does without uv, only slower.
"""

from __future__ import annotations

import os
import subprocess

from tox.plugin import impl
from tox.tox_env.register import ToxEnvRegister

RUNNER = "STRATA_TOX_RUNNER"
"""What was found out, for the processes that `tox -p` starts."""


def uv_works() -> bool:
    """Ask for one package, as uv will later do for all."""
    try:
        from uv import find_uv_bin

        command = [find_uv_bin(), "pip", "compile", "--quiet", "--no-deps", "-"]
        subprocess.run(command, input=b"attrs", capture_output=True, check=True, timeout=30)
    except (ImportError, OSError, subprocess.SubprocessError):
        return False
    return True


@impl(trylast=True)
def tox_register_tox_env(register: ToxEnvRegister) -> None:
    """Choose, after tox-uv has made uv the default."""
    for name, value in {
        "UV_SYSTEM_CERTS": "true",  # the authorities that pip trusts
        "UV_HTTP_RETRIES": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }.items():
        os.environ.setdefault(name, value)
    if RUNNER not in os.environ:
        os.environ[RUNNER] = "uv-venv-runner" if uv_works() else "virtualenv"
    register.default_env_runner = os.environ[RUNNER]
