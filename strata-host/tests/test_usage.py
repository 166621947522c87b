"""Exit codes and messages of wrong usage and of stores that cannot be read."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode, b64encode
from contextlib import asynccontextmanager

import pytest

from strata_core.errors import StoreUnavailableError
from strata_host.cli._entered import entered
from strata_host.cli._errors import CommandError

COMMANDS = [
    ("thread", "list"),
    ("thread", "inspect", "x"),
    ("checkpoint", "log", "x"),
    ("checkpoint", "diff", "x", "--seq-a", "0", "--seq-b", "0"),
    ("checkpoint", "replay", "x", "--sequence", "0"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
class TestStorage:
    def test_without_a_storage_the_option_and_the_variable_are_named(self, strata, command):
        error = strata(*command, code=2).stderr

        assert error.startswith("strata: missing option '--storage' (env var: 'STRATA_STORAGE')")

    def test_a_path_that_does_not_exist_is_wrong_usage_and_is_not_created(self, strata, command, tmp_path):
        missing = tmp_path / "mistyped.db"
        error = strata(*command, "--storage", str(missing), code=2).stderr

        assert error.startswith(f"strata: invalid value for '--storage': '{missing}' does not exist")
        assert [] == list(tmp_path.iterdir())

    def test_a_folder_is_no_database(self, strata, command, tmp_path):
        assert "is a folder" in strata(*command, "--storage", str(tmp_path), code=2).stderr

    def test_a_url_whose_file_does_not_exist_is_wrong_usage_and_is_not_created(self, strata, command, tmp_path):
        error = strata(*command, "--storage", f"jsonl:///{tmp_path}/mistyped.jsonl", code=2).stderr

        assert error.startswith(f"strata: invalid value for '--storage': cannot open '{tmp_path}/mistyped.jsonl'")
        assert [] == list(tmp_path.iterdir())

    def test_an_unknown_scheme_is_wrong_usage(self, strata, command):
        error = strata(*command, "--storage", "nosuch://host/db", code=2).stderr

        assert error.startswith("strata: ")
        assert "nosuch" in error

    def test_an_empty_storage_is_wrong_usage(self, strata, command):
        assert strata(*command, "--storage", "", code=2).stderr.startswith("strata: ")

    def test_nothing_is_written_to_the_store(self, shelf, look, checkpoint, command):
        shelf.save(checkpoint("x"))
        before = {path: path.read_bytes() for path in shelf.path.parent.iterdir()}
        look(*command)

        assert before == {path: path.read_bytes() for path in shelf.path.parent.iterdir()}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_store_without_a_read_only_open_is_only_read(strata, shelf, checkpoint, command):
    shelf.save(checkpoint("x"))
    before = {path: path.read_bytes() for path in shelf.path.parent.iterdir()}
    result = strata(*command, "--storage", f"writable:///{shelf.path}")

    assert result.stdout
    assert result.stderr == ""
    assert before == {path: path.read_bytes() for path in shelf.path.parent.iterdir()}


def test_such_a_store_is_not_created_either(strata, tmp_path):
    error = strata("thread", "list", "--storage", f"writable:///{tmp_path}/mistyped.jsonl", code=1).stderr

    assert "mistyped.jsonl' is not there: call store.setup() once" in error
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["memory://", "memory://shared"])
def test_a_store_in_memory_is_wrong_usage(strata, url):
    error = strata("thread", "list", "--storage", url, code=2).stderr

    assert error.startswith("strata: invalid value for '--storage': memory:// is private to a process")


@pytest.mark.parametrize("command", [(), ("thread",)], ids=["strata", "strata thread"])
@pytest.mark.parametrize("option", ["--storage", "--json", "--blobs"])
def test_an_option_before_its_command_is_told_its_place(strata, command, option):
    error = strata(*command, option, "x", code=2).stderr

    assert error.startswith(f"strata: no such option '{option}'")
    assert "; it goes after the command (see " in error


def test_an_option_that_no_command_has_gets_no_such_hint(strata):
    assert "goes after" not in strata("--nonsense", "thread", "list", code=2).stderr


@pytest.mark.parametrize("command", COMMANDS[1:], ids=" ".join)
def test_an_id_that_begins_with_a_dash_is_told_its_place(look, strata, command):
    name, verb, _, *options = command
    error = strata(name, verb, "-17", *options, code=2).stderr

    assert error.startswith("strata: no such option '-1'; an ID that begins with a dash goes after '--' (see ")
    assert "there is no thread -17" in look(name, verb, *options, "--", "-17", code=1).stderr


@pytest.fixture
def tamper(shelf):
    """Replace bytes in a part of every stored row."""

    def change(part, old, new):
        batches = [json.loads(line) for line in shelf.path.read_text().splitlines()]
        for stored in (change["row"] for batch in batches for change in batch["changes"]):
            stored[part] = b64encode(b64decode(stored[part]).replace(old, new)).decode()
        shelf.path.write_text(
            "".join(json.dumps(batch).replace(old.decode(), new.decode()) + "\n" for batch in batches)
        )

    return change


def test_a_storage_that_cannot_be_read_is_told_in_one_line(look, shelf):
    shelf.path.write_text("{not json\n")
    error = look("thread", "list", code=1).stderr

    assert error.startswith(f"strata: query failed: '{shelf.path}' has a line that is not JSON: ")
    assert error.count("\n") == 1


def test_a_corrupt_row_is_a_failed_query(look, shelf, checkpoint, tamper):
    shelf.save(checkpoint())
    tamper("body", b'{"step":1}', b'{"step":')
    error = look("thread", "inspect", "report-1", code=1).stderr

    assert error.startswith("strata: query failed: checkpoint 'report-1' #0 ")


def test_a_newer_record_format_is_a_failed_query_that_names_it(look, shelf, checkpoint, tamper):
    shelf.save(checkpoint())
    tamper("envelope", b"1.7.0", b"1.99.0")
    error = look("thread", "inspect", "report-1", code=1).stderr

    assert error.startswith("strata: query failed: ")
    assert "1.99.0" in error


def test_without_a_command_the_help_is_shown_and_the_usage_is_wrong(strata):
    result = strata(code=2)

    assert result.stdout == ""
    assert "Commands:" in result.stderr


@pytest.mark.parametrize("command", [["-h"], ["thread", "--help"], ["checkpoint", "diff", "--help"]], ids=" ".join)
def test_help_goes_to_stdout(strata, command):
    assert "Usage: strata" in strata(*command).stdout


@pytest.mark.parametrize("group", ["", "thread", "checkpoint", "graph", "blobs"])
def test_what_a_command_does_is_told_without_being_cut(strata, group):
    listed = strata(*group.split(), "--help").stdout.partition("Commands:")[2]

    assert listed
    assert "..." not in listed


def test_the_version_is_that_of_the_distribution(strata):
    assert strata("--version").stdout == "strata 0.1.0\n"


def test_an_unknown_command_points_to_the_help(strata):
    error = strata("threads", code=2).stderr

    assert error.startswith("strata: no such command 'threads'")
    assert "(see 'strata --help')" in error


@pytest.mark.parametrize("command", [*COMMANDS, ("plugins",)], ids=" ".join)
def test_every_command_takes_json(strata, command):
    assert "--json" in strata(*command[:2], "--help").stdout


def test_a_listing_that_meets_a_corrupt_thread_tells_how_to_go_on(look, shelf, checkpoint, tamper):
    shelf.save(checkpoint("good"), checkpoint("bad"), checkpoint("also good"))
    tamper("envelope", b'"thread_id":"bad"', b'"thread_id":"BAD"')
    error = look("thread", "list", code=1).stderr
    cursor = re.search(r"the threads behind it: --cursor (\S+);", error)

    assert "query failed: checkpoint 'bad' #0 " in error
    assert cursor is not None
    assert "also good" in look("thread", "list", "--cursor", cursor[1]).stdout


def test_what_went_wrong_first_is_told_and_not_that_the_store_could_not_be_closed():
    @asynccontextmanager
    async def stuck():
        yield "store"
        raise StoreUnavailableError("could not be closed")

    async def use(work):
        async with entered(stuck(), "'--storage'", "'--blobs'") as store:
            work(store)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(use(lambda _: 1 / 0))
    with pytest.raises(CommandError, match="query failed: could not be closed"):
        asyncio.run(use(lambda _: None))
