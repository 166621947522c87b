"""The command ``strata-conformance``."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import attrs

from strata_conformance._contract import CONTRACT, collect
from strata_conformance._probe import Traces, foreign_thread, kind_of, opens
from strata_conformance._target import VARIABLE, Kind, Target, Url
from strata_conformance._verdict import line, unproven
from strata_core.errors import InvalidInputError, StrataError
from strata_core.urls import redact, scheme_of, scrub

__all__ = ["CONFORMS", "FAILS", "USAGE", "main"]

CONFORMS: Final = 0
FAILS: Final = 1
USAGE: Final = 2

_DESCRIPTION: Final = """\
Prove a store against the contract of Strata, without a line of test code.

TARGET is the URL of a store (sqlite:///x.db, memory://, any scheme of an installed plugin), or module:function.

A URL: the threads of the tests have random IDs, are the only ones the tests see, write, purge or erase, and are erased
afterwards. A storage that holds other threads is refused unless --allow-existing is given. A file that did not exist is
removed again.

module:function: called with path=, and with clock= where it takes one; it returns a RowBackend, an async context
manager of a store, or a BlobStore, on the storage of that path: the same path, the same storage; a path never seen
before, an empty one. It is imported from the present folder.
"""
_EXIT: Final = "exit code: 0 the store conforms, 1 it does not, 2 it could not be tested"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    extra: list[str] = []
    if "--" in given:
        at = given.index("--")
        given, extra = given[:at], given[at + 1 :]
    options = _parser().parse_args(given)
    if options.list:
        _list()
        return CONFORMS
    if options.target is None:
        _parser().error("TARGET is missing")
    for report in (options.json, options.junit):
        if report is not None and not report.absolute().parent.is_dir():
            return _usage(f"there is no folder {report.absolute().parent} to write {report.name} to; make it first")
    sys.path.insert(0, str(Path.cwd()))
    with ExitStack() as stack:
        try:
            target = _target(options.target, stack, allow_existing=options.allow_existing)
        except StrataError as error:
            return _usage(scrub(str(error), options.target))
        except Exception as error:  # noqa: BLE001  # whatever a driver or a function raises, there is nothing to test
            return _usage(scrub(f"{redact(options.target)}: {type(error).__name__}: {error}", options.target))
        return _test(target, options.json, options.junit, extra)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "strata-conformance",
        usage="%(prog)s [options] TARGET [-- pytest arguments]",
        description=_DESCRIPTION,
        epilog=_EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", nargs="?", metavar="TARGET", help="a URL, or module:function")
    parser.add_argument("--allow-existing", action="store_true", help="test on a storage that holds other threads")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the verdict, promise by promise")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write a JUnit report, test by test")
    parser.add_argument("--list", action="store_true", help="list the promises of the contract, and end")
    parser.add_argument(
        "--version",
        action="version",
        version=f"strata-conformance {version('strata-conformance')}, contract {CONTRACT}",
    )
    return parser


def _list() -> None:
    from strata_conformance.suite import CLASSES

    for name, promises in collect(CLASSES).items():
        print(name)
        for promise in promises:
            needs = f" (needs {' and '.join(promise.needs)})" if promise.needs else ""
            print(f"  {promise.id}: {promise.text}{needs}")


def _usage(problem: str) -> int:
    print(f"strata-conformance: {problem}", file=sys.stderr)
    return USAGE


def _target(name: str, stack: ExitStack, *, allow_existing: bool) -> Target:
    """Look at the target, and prepare to remove what testing it leaves."""
    if _is_function(name):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-conformance-"))
        target = Target(name, Kind.ROWS, folder)
        return attrs.evolve(target, kind=asyncio.run(kind_of(target)))
    module = name.removesuffix(".py").replace("/", ".")
    if ":" not in name and Path(*module.split(".")).with_suffix(".py").is_file():  # as a path, it would be a database
        raise InvalidInputError("TARGET", f"{name} is a module: name the function in it too, as {module}:function")
    url = Url(name)
    target = Target(name, Kind.ROWS)
    url.bare()
    if scheme_of(name) == "memory":
        return target
    if not allow_existing and (found := asyncio.run(foreign_thread(url))) is not None:
        raise ForeignThreadsError(
            f"{redact(name)} holds threads that are not of this run, such as {found!r}: give an empty storage, or "
            "--allow-existing if nobody works with it meanwhile"
        )
    traces = Traces(name)
    stack.callback(traces.remove)
    asyncio.run(opens(url))
    traces.made()
    return target


class ForeignThreadsError(StrataError):
    """The storage is somebody's."""


def _is_function(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def _test(target: Target, report: Path | None, junit: Path | None, extra: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="strata-conformance-") as folder:
        result = Path(folder, "verdict.json")
        command = [
            sys.executable, "-m", "pytest", "--pyargs", "strata_conformance._target_tests",
            "-c", os.devnull, "--rootdir", str(Path(__file__).parent), "--noconftest", "-q", "-p", "strata_conformance",
            "-p", "no:cacheprovider", "-W", "error", "--strict-markers", "--tb=short", f"--strata-json={result}",
            *([f"--junit-xml={junit.absolute()}"] if junit else []),
            *extra,
        ]  # fmt: skip
        environment = os.environ | {VARIABLE: target.dump(), "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        environment.pop("PYTEST_ADDOPTS", None)
        code = subprocess.run(command, env=environment, check=False).returncode  # noqa: S603  # our own tests
        if code not in (0, 1) or not result.exists():
            return _usage(f"the tests did not run to their end: pytest ended with {code}")
        verdict: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        if report is not None:
            report.write_text(json.dumps(verdict, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if not verdict["stores"]:
        return _usage("no test was run")
    (judged,) = verdict["stores"].values()
    print(line(judged))
    for told in unproven(judged):
        print(told)
    print(f"{target.shown}: {judged['verdict']} (contract {CONTRACT})")
    if code == 0 and judged["verdict"] == "conforms":
        return CONFORMS
    return FAILS if code or judged["verdict"] == "does not conform" else _usage("a part of the tests was left out")
