"""What the listing says about each installed plugin."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import pytest

from strata_core.plugins import PluginInfo, PluginKind, PluginStatus, list_plugins

CORE = version("strata-core")
BAD = "plugin 'bad' of bad-strata 0.2 (entry point 'bad_strata' in strata_core.wrappers)"
BUILT_IN = [
    PluginInfo(PluginKind.STORE, "memory", "strata-core", CORE, PluginStatus.OK),
    PluginInfo(PluginKind.BLOBS, "file", "strata-core", CORE, PluginStatus.OK),
]


def listed(*distributions: str) -> list[PluginInfo]:
    return [info for info in list_plugins() if info.distribution in distributions]


class TestListing:
    def test_built_in_plugins_are_listed_like_any_other(self, install: Any) -> None:
        """Stores first, then blob stores."""
        assert BUILT_IN == listed("strata-core")

    def test_every_condition_is_told(self, install: Any, store_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """One line an entry point, ordered by kind, name and distribution, and none of them raises."""
        install(
            "good-strata",
            stores={"good": "good_strata", "goods": "good_strata"},
            modules={"good_strata": store_module("good", "good", "goods")},
        )
        install("off-strata", "0.1", stores={"off": "off_strata"}, modules={"off_strata": "raise SystemExit(3)"})
        install("bad-strata", "0.2", wrappers={"bad": "bad_strata"}, modules={"bad_strata": "1 / 0"})
        for name in ("one-strata", "two-strata"):
            install(name, stores={"both": "both_strata"}, modules={"both_strata": "raise SystemExit(3)"})
        install("odd-strata", "0.3", entry_points="[strata_core.blobs]\nno equals sign\n")
        monkeypatch.setenv("STRATA_DISABLE_PLUGINS", "off")

        found = listed("good-strata", "off-strata", "bad-strata", "one-strata", "two-strata", "odd-strata")

        assert [
            ("store", "both", "one-strata", "1.0", "conflict", "also offered by two-strata 1.0"),
            ("store", "both", "two-strata", "1.0", "conflict", "also offered by one-strata 1.0"),
            ("store", "good", "good-strata", "1.0", "ok", ""),
            ("store", "goods", "good-strata", "1.0", "ok", ""),
            ("store", "off", "off-strata", "0.1", "blocked", "named in STRATA_DISABLE_PLUGINS"),
            ("blobs", "", "odd-strata", "0.3", "broken", found[5].detail),
            (
                "wrapper",
                "bad",
                "bad-strata",
                "0.2",
                "broken",
                f"{BAD} cannot be imported: ZeroDivisionError: division by zero",
            ),
        ] == [(i.kind, i.name, i.distribution, i.version, i.status, i.detail) for i in found]
        assert found[5].detail.startswith("its entry points cannot be read: ")

    def test_blocked_and_conflicting_plugins_are_not_imported(
        self, install: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A listing must not run what the operator switched off."""
        install("off-strata", stores={"off": "off_strata"}, modules={"off_strata": ""})
        for name in ("one-strata", "two-strata"):
            install(name, stores={"both": "both_strata"}, modules={"both_strata": ""})
        monkeypatch.setenv("STRATA_DISABLE_PLUGINS", "off-strata")

        list_plugins()

        assert not {"off_strata", "both_strata"} & set(sys.modules)

    def test_a_blocked_rival_is_no_conflict(
        self, install: Any, store_module: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is left works."""
        for name in ("one-strata", "two-strata"):
            module = name.replace("-", "_")
            install(name, stores={"both": module}, modules={module: store_module("both")})
        monkeypatch.setenv("STRATA_DISABLE_PLUGINS", "one-strata")

        assert ["blocked", "ok"] == [info.status for info in listed("one-strata", "two-strata")]

    def test_two_plugins_that_broke_are_both_told(self, install: Any) -> None:
        """The second is not hidden by the first."""
        install("a-strata", stores={"a": "a_strata"}, modules={"a_strata": "raise SystemExit"})
        install("b-strata", blobs={"b": "b_strata"}, modules={"b_strata": ""})

        assert ["broken", "broken"] == [info.status for info in listed("a-strata", "b-strata")]
