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
    assert [] == list(distribution("strata-redis").entry_points)


def test_it_needs_core_only() -> None:
    assert ["strata-core<0.2,>=0.1"] == distribution("strata-redis").requires


def test_it_says_that_it_is_planned() -> None:
    metadata = distribution("strata-redis").metadata

    assert "Development Status :: 1 - Planning" in metadata.get_all("Classifier", [])
    assert "planned" in metadata["Summary"]


def test_its_version_is_that_of_the_distribution() -> None:
    assert distribution("strata-redis").version == import_module("strata_redis").__version__


def test_another_attribute_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'strata_redis' has no attribute 'open'"):
        import_module("strata_redis").open  # noqa: B018  # the access is what is tested


def test_it_is_typed() -> None:
    assert (files("strata_redis") / "py.typed").is_file()


def test_importing_it_imports_nothing_beyond_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import strata_redis; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    allowed = sys.stdlib_module_names | {"strata_redis"}

    assert [] == [name for name in loaded if name.partition(".")[0] not in allowed]
