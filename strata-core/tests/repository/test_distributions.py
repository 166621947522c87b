"""The seven distributions: each has what it needs to be released alone, and depends on core only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

NAMES = {
    "conformance": "strata-conformance",
    "strata-blobs-s3": "strata-blobs-s3",
    "strata-core": "strata-core",
    "strata-host": "strata-host",
    "strata-postgres": "strata-postgres",
    "strata-redis": "strata-redis",
    "strata-sqlite": "strata-sqlite",
}
DRIVERS = {"aiosqlite", "psycopg", "psycopg_pool", "redis", "boto3", "botocore", "pytest", "hypothesis", "_pytest"}


def project(distribution: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((distribution / "pyproject.toml").read_text(encoding="utf-8"))
    return loaded


def package(distribution: Path) -> Path:
    """The one package that a distribution ships."""
    (found,) = (path.parent for path in (distribution / "src").glob("*/__init__.py"))
    return found


def imported(source: Path) -> set[str]:
    """The top-level names of everything that a module imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}: a relative import"
            names.add((node.module or "").partition(".")[0])
    return names


def test_there_are_the_seven_distributions(distributions: list[Path]) -> None:
    assert {path.name: project(path)["project"]["name"] for path in distributions} == NAMES


def test_each_has_the_files_of_a_distribution(distributions: list[Path], root: Path) -> None:
    missing = [
        str((path / name).relative_to(root))
        for path in distributions
        for name in ("README.md", "CHANGELOG.md", "LICENSE", f"src/{package(path).name}/py.typed", "tests")
        if not (path / name).exists()
    ]

    assert [] == missing


def test_each_package_is_named_after_its_distribution(distributions: list[Path]) -> None:
    for path in distributions:
        assert NAMES[path.name].replace("-", "_") == package(path).name


def test_each_carries_the_licence_of_the_repository(distributions: list[Path], root: Path) -> None:
    licence = (root / "LICENSE").read_bytes()

    assert [] == [path.name for path in distributions if (path / "LICENSE").read_bytes() != licence]


def test_each_has_a_changelog_with_a_place_for_the_next_release(distributions: list[Path]) -> None:
    place = re.compile(r"^## .*\bunreleased\b", re.MULTILINE | re.IGNORECASE)
    lacking = [path.name for path in distributions if not place.search((path / "CHANGELOG.md").read_text())]

    assert [] == lacking


def test_metadata_is_complete_and_the_version_static(distributions: list[Path]) -> None:
    for path in distributions:
        loaded = project(path)
        meta = loaded["project"]
        assert "hatchling.build" == loaded["build-system"]["build-backend"]
        assert re.fullmatch(r"\d+\.\d+\.\d+", meta["version"]), path.name
        assert "MIT" == meta["license"]
        assert ">=3.11" == meta["requires-python"]
        assert [{"name": "The Strata maintainers"}] == meta["authors"]
        assert "Typing :: Typed" in meta["classifiers"]
        assert "dynamic" not in meta


def test_dependencies_between_the_distributions_point_at_core(distributions: list[Path]) -> None:
    for path in distributions:
        ours = [line for line in project(path)["project"]["dependencies"] if line.startswith("strata")]
        assert ours == ([] if path.name == "strata-core" else ["strata-core>=0.1,<0.2"]), path.name


def test_imports_between_the_distributions_point_at_core(distributions: list[Path]) -> None:
    packages = {package(path).name for path in distributions}
    for path in distributions:
        own = package(path).name
        for source in package(path).rglob("*.py"):
            others = imported(source) & packages - {own, "strata_core"}
            assert set() == others, source


def test_core_imports_no_driver_and_no_test_tool_anywhere(root: Path) -> None:
    for source in (root / "strata-core" / "src").rglob("*.py"):
        assert set() == imported(source) & DRIVERS, source


def test_what_a_distribution_imports_it_depends_on(distributions: list[Path]) -> None:
    """A module that another dependency happens to bring is no dependency."""
    names = {"psycopg-pool": "psycopg_pool", "strata-core": "strata_core"}
    for path in distributions:
        meta = project(path)["project"]
        lines = meta["dependencies"] + [
            line for extra in meta.get("optional-dependencies", {}).values() for line in extra
        ]
        declared = {re.split(r"[<>=!~\[; ]", line)[0] for line in lines}
        allowed = sys.stdlib_module_names | {names.get(name, name) for name in declared} | {package(path).name}
        if path.name == "conformance":
            allowed |= {"_pytest"}
        for source in package(path).rglob("*.py"):
            assert set() == imported(source) - allowed, source


def test_importing_core_imports_no_dependency_that_it_does_not_need_yet() -> None:
    code = "import sys, strata_core; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    )

    assert set() == loaded & (DRIVERS | {"cattrs", "pluggy"})
