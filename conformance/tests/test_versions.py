"""VERSIONING.md tells the versions that the code has; this test runs from a checkout only."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from strata_conformance import CONTRACT
from strata_core.codec import SCHEMA_VERSION
from strata_core.hookspecs import PORT_VERSION
from strata_postgres import _schema as postgres
from strata_redis import _setup as redis
from strata_sqlite import _schema as sqlite

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "VERSIONING.md").is_file(), reason="the page is not in the distribution")


def page() -> str:
    return (ROOT / "VERSIONING.md").read_text(encoding="utf-8")


def now() -> dict[str, str]:
    """The versions in the page's table, by what they are of."""
    return dict(re.findall(r"^\| (?!what)([^|]+?) \| ([\d.]+) \|", page(), re.MULTILINE))


def projects() -> list[dict[str, object]]:
    return [
        tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in sorted(ROOT.glob("*/pyproject.toml"))
    ]


def test_the_table_has_the_versions_of_the_code():
    assert {
        "each distribution": "0.1.0",
        "the record format": SCHEMA_VERSION,
        "the plugin contract": str(PORT_VERSION),
        "the schema in SQLite": str(sqlite.VERSION),
        "the schema in PostgreSQL": str(postgres.VERSION),
        "the format in Redis and Valkey": str(redis.FORMAT),
        "the conformance contract": str(CONTRACT),
        "Python": "3.11",
    } == now()


def test_each_distribution_has_the_version_that_the_table_tells():
    assert {now()["each distribution"]} == {project["version"] for project in projects()}


def test_the_backends_own_pages_tell_the_same_versions():
    for folder, sentence in {
        "strata-sqlite": f"`PRAGMA user_version`, now {sqlite.VERSION}",
        "strata-postgres": f"`strata_version`, now {postgres.VERSION}",
        "strata-redis": f"its format, now {redis.FORMAT}",
    }.items():
        assert sentence in (ROOT / folder / "README.md").read_text(encoding="utf-8")


def test_every_distribution_takes_the_pythons_that_the_page_names():
    named = set(re.findall(r"3\.\d+", page().partition("Each distribution takes Python")[2].partition(". ")[0]))

    for project in projects():
        classifiers = project["classifiers"]
        assert isinstance(classifiers, list)
        assert named == {found[1] for line in classifiers if (found := re.search(r"Python :: (3\.\d+)", line))}
        assert f">={now()['Python']}" == project["requires-python"]


def test_the_range_of_core_that_the_page_tells_is_that_of_every_other_distribution():
    (told,) = re.findall(r"`(strata-core>=[^`]+)`", page())

    for project in projects():
        dependencies = project["dependencies"]
        assert isinstance(dependencies, list)
        assert project["name"] == "strata-core" or told in dependencies
