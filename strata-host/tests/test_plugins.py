"""`strata plugins`."""

from __future__ import annotations

import pytest


@pytest.fixture
def bad_plugin(tmp_path, monkeypatch):
    """Install a distribution whose module cannot be imported."""
    information = tmp_path / "strata_bad-2.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: strata-bad\nVersion: 2.0\n")
    (information / "entry_points.txt").write_text("[strata_core.stores]\nbad = strata_bad_module\n")
    (tmp_path / "strata_bad_module.py").write_text("raise ImportError('\\x1b[31m no driver')\n")
    monkeypatch.syspath_prepend(tmp_path)


def _plugin(document, name):
    (found,) = [plugin for plugin in document["plugins"] if plugin["name"] == name]
    return found


def test_a_plugin_is_shown_with_its_distribution(look, look_json):
    row = next(line for line in look("plugins").stdout.splitlines() if " jsonl " in line)

    assert "strata-jsonl@0.1.0" in row
    assert {
        "kind": "store",
        "name": "jsonl",
        "distribution": "strata-jsonl",
        "version": "0.1.0",
        "status": "ok",
        "detail": "",
    } == _plugin(look_json("plugins"), "jsonl")


def test_a_broken_plugin_is_listed_with_its_reason_and_breaks_nothing(look, look_json, bad_plugin):
    broken = _plugin(look_json("plugins"), "bad")

    assert ("broken", "strata-bad", "2.0") == (broken["status"], broken["distribution"], broken["version"])
    assert "no driver" in broken["detail"]
    assert "\x1b" not in look("plugins").output
    assert "ok" == _plugin(look_json("plugins"), "jsonl")["status"]


def test_a_broken_plugin_does_not_stop_a_command_on_another_store(look, bad_plugin):
    look("thread", "list")


def test_a_store_of_a_broken_plugin_is_not_wrong_usage(strata, bad_plugin):
    error = strata("thread", "list", "--storage", "bad://x", code=1).stderr

    assert "strata-bad" in error
    assert error.count("\n") == 1


def test_a_blocked_plugin_says_so(look_json, monkeypatch):
    monkeypatch.setenv("STRATA_DISABLE_PLUGINS", "jsonl")

    assert "blocked" == _plugin(look_json("plugins"), "jsonl")["status"]
