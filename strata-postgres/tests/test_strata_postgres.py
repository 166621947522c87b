"""What a planned distribution may say: its name and version, and that there is nothing to use."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution
from importlib.resources import files

import pytest


def test_it_declares_no_plugin() -> None:
    """Nothing is offered under a URL scheme that would then fail."""
    assert [] == list(distribution("strata-postgres").entry_points)


def test_it_needs_core_only() -> None:
    assert ["strata-core<0.2,>=0.1"] == distribution("strata-postgres").requires


def test_it_says_that_it_is_planned() -> None:
    metadata = distribution("strata-postgres").metadata

    assert "Development Status :: 1 - Planning" in metadata.get_all("Classifier", [])
    assert "planned" in metadata["Summary"]


def test_its_version_is_that_of_the_distribution() -> None:
    assert distribution("strata-postgres").version == import_module("strata_postgres").__version__


def test_another_attribute_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'strata_postgres' has no attribute 'open'"):
        import_module("strata_postgres").open  # noqa: B018  # the access is what is tested


def test_it_is_typed() -> None:
    assert (files("strata_postgres") / "py.typed").is_file()


def test_importing_it_imports_nothing_beyond_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import strata_postgres; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    allowed = sys.stdlib_module_names | {"strata_postgres"}

    assert [] == [name for name in loaded if name.partition(".")[0] not in allowed]
