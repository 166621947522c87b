"""Which installed plugin serves a scheme, and what is said when none does."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from strata_core.errors import PluginError
from strata_core.plugins import DISABLE_VARIABLE, PluginSet


def refusal(scheme: str, kind: str = "store") -> PluginError:
    with pytest.raises(PluginError) as refused:
        getattr(PluginSet(), kind)(scheme)
    return refused.value


class TestFinding:
    def test_the_entry_points_name_is_the_scheme(self, install: Any, store_module: Any) -> None:
        """An installed distribution is found without being named anywhere else."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")})

        assert "acme" == PluginSet().store("acme").store.name

    def test_only_the_wanted_plugin_is_imported(self, install: Any, store_module: Any) -> None:
        """Others, be they slow, broken or terrible, are left alone."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")})
        install("slow-strata", stores={"slow": "slow_strata"}, modules={"slow_strata": store_module("slow")})
        install("bad-strata", stores={"bad": "bad_strata"}, modules={"bad_strata": "raise SystemExit(3)"})
        install("ink-strata", wrappers={"ink": "ink_strata"}, modules={"ink_strata": "raise SystemExit(3)"})

        PluginSet().store("acme")

        assert {"acme_strata"} == {"acme_strata", "slow_strata", "bad_strata", "ink_strata"} & set(sys.modules)

    def test_a_module_that_serves_several_schemes_is_registered_once(self, install: Any, store_module: Any) -> None:
        """Both entry points lead to the same plugin and the same record."""
        install(
            "acme-strata",
            stores={"acme": "acme_strata", "acmes": "acme_strata"},
            modules={"acme_strata": store_module("acme", "acme", "acmes")},
        )
        plugins = PluginSet()

        first, second = plugins.store("acme"), plugins.store("acmes")

        assert first.plugin is second.plugin
        assert first.store is second.store

    def test_one_module_may_offer_two_stores(self, install: Any) -> None:
        """Each function names the hook it implements."""
        module = """
            from strata_core.hookspecs import StoreProvider, hookimpl

            @hookimpl(specname="strata_checkpoint_store")
            def red():
                return StoreProvider("red", ("red",), 1, lambda url, options: None)

            @hookimpl(specname="strata_checkpoint_store")
            def blue():
                return StoreProvider("blue", ("blue",), 1, lambda url, options: None)
        """
        install("two-strata", stores={"red": "two_strata", "blue": "two_strata"}, modules={"two_strata": module})

        assert ["red", "blue"] == [PluginSet().store(scheme).store.name for scheme in ("red", "blue")]

    def test_an_entry_point_may_name_an_object(self, install: Any) -> None:
        """Its methods are hooks; properties are not evaluated."""
        module = """
            from strata_core.hookspecs import StoreProvider, hookimpl

            class Plugin:
                @property
                def connection(self):
                    raise RuntimeError("connected while registering")

                @hookimpl
                def strata_checkpoint_store(self):
                    return StoreProvider("acme", ("acme",), 1, lambda url, options: None)

            plugin = Plugin()
        """
        install("acme-strata", stores={"acme": "acme_strata:plugin"}, modules={"acme_strata": module})

        assert "acme" == PluginSet().store("acme").store.name

    def test_built_in_plugins_take_the_same_way(self) -> None:
        """Memory stores and folder blobs are entry points of core."""
        plugins = PluginSet()

        memory, folder = plugins.store("memory"), plugins.blobs("file")

        assert "memory" == memory.store.name
        assert "file" == folder[1].name
        assert (f"strata-core {version('strata-core')}",) == memory.plugin.distributions
        assert memory.plugin is folder[0]


class TestUnknownNames:
    def test_an_unknown_scheme_lists_what_is_installed(self, install: Any, store_module: Any) -> None:
        """The list helps against typing errors."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")})

        said, _, installed = str(refusal("amce")).partition("; installed: ")

        assert "no plugin offers a store for 'amce' URLs (did you mean 'acme'?)" == said
        assert {"acme", "memory"} <= set(installed.split(", "))

    @pytest.mark.parametrize(
        ("kind", "scheme", "way_out"),
        [
            ("store", "sqlite", "install strata-sqlite"),
            ("store", "postgres", "install strata-postgres"),
            ("store", "postgresql", "install strata-postgres"),
            ("store", "redis", "install strata-redis"),
            ("store", "rediss", "install strata-redis"),
            ("blobs", "s3", "install strata-blobs-s3"),
        ],
    )
    def test_a_scheme_of_ours_names_the_package_and_whether_there_is_one(
        self, kind: str, scheme: str, way_out: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody is sent to install what does not exist."""
        monkeypatch.setattr("strata_core.plugins._entries.distributions", list)

        assert str(refusal(scheme, kind)).endswith(f"installed: none; {way_out}")

    def test_a_scheme_of_ours_that_is_mistyped_is_guessed_although_nothing_is_installed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What may have been meant is not only what is there."""
        monkeypatch.setattr("strata_core.plugins._entries.distributions", list)

        assert "for 'postgers' URLs (did you mean 'postgres'?); installed: none" in str(refusal("postgers"))
        assert "did you mean" not in str(refusal("mongodb"))

    def test_a_blob_scheme_is_not_mistaken_for_a_store(self) -> None:
        """Whoever opens a store with it is told where it belongs."""
        assert "'file' is a blob store: give it as Offload(blobs=...)" in str(refusal("file"))

    def test_an_unknown_wrapper_lists_what_is_installed(self, install: Any) -> None:
        """The same for wrappers."""
        install("ink-strata", wrappers={"ink": "ink_strata"}, modules={"ink_strata": ""})

        said, _, installed = str(refusal("ikn", "wrapper")).partition("; installed: ")

        assert "no plugin offers a wrapper named 'ikn' (did you mean 'ink'?)" == said
        assert "ink" in installed.split(", ")


class TestConflicts:
    def test_two_distributions_with_one_scheme_are_an_error_that_names_both(
        self, install: Any, store_module: Any
    ) -> None:
        """Neither the path nor the alphabet picks a winner, and neither is imported."""
        for name in ("acme-strata", "strata-acme"):
            module = name.replace("-", "_")
            install(name, "2.1", stores={"acme": module}, modules={module: store_module("acme")})

        conflict = refusal("acme")

        assert ("acme-strata 2.1", "strata-acme 2.1") == conflict.distributions
        assert "acme-strata 2.1 (acme_strata) and strata-acme 2.1 (strata_acme)" in str(conflict)
        assert not {"acme_strata", "strata_acme"} & set(sys.modules)

    def test_the_conflict_does_not_depend_on_the_order_of_the_path(
        self, install: Any, store_module: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same error, whoever comes first."""
        for name in ("acme-strata", "strata-acme"):
            module = name.replace("-", "_")
            install(name, stores={"acme": module}, modules={module: store_module("acme")})
        first = str(refusal("acme"))
        monkeypatch.setattr(sys, "path", [sys.path[1], sys.path[0], *sys.path[2:]])

        assert first == str(refusal("acme"))

    def test_blocking_one_of_them_settles_it(
        self, install: Any, store_module: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error says so, and it is true."""
        for name in ("acme-strata", "strata-acme"):
            module = name.replace("-", "_")
            install(name, stores={"acme": module}, modules={module: store_module(f"{module}_store", "acme")})
        assert DISABLE_VARIABLE in str(refusal("acme"))
        monkeypatch.setenv(DISABLE_VARIABLE, "other, Strata_ACME")

        assert "acme_strata_store" == PluginSet().store("acme").store.name

    def test_a_conflict_is_nobody_elses_trouble(self, install: Any, store_module: Any) -> None:
        """Other schemes of the same distributions work."""
        for name in ("acme-strata", "strata-acme"):
            module = name.replace("-", "_")
            install(
                name,
                stores={"acme": module, module.replace("_", ""): module},
                modules={module: store_module(module, "acme", module.replace("_", ""))},
            )

        assert "acme_strata" == PluginSet().store("acmestrata").store.name

    def test_one_distribution_that_is_there_twice_counts_once(self, install: Any, store_module: Any) -> None:
        """An editable install and a wheel of it are the same plugin; an import takes the first, and so do we."""
        install(
            "acme_strata", "1.0", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("old", "acme")}
        )
        install(
            "Acme.Strata", "1.1", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("new", "acme")}
        )

        parts = PluginSet().store("acme")

        assert "new" == parts.store.name
        assert ("Acme.Strata 1.1",) == parts.plugin.distributions

    def test_the_same_line_twice_in_one_distribution_counts_once(self, install: Any, store_module: Any) -> None:
        """Repeating oneself is no conflict."""
        lines = "[strata_core.stores]\nacme = acme_strata\nacme = acme_strata\n"
        install("acme-strata", entry_points=lines, modules={"acme_strata": store_module("acme")})

        assert "acme" == PluginSet().store("acme").store.name


class TestBlocking:
    @pytest.mark.parametrize("named", ["acme", "x, acme ,", "acme-strata", "ACME_Strata"])
    def test_a_blocked_plugin_is_an_error_when_it_is_asked_for(
        self, install: Any, store_module: Any, monkeypatch: pytest.MonkeyPatch, named: str
    ) -> None:
        """By its entry point's name or by its distribution's; it is not imported, and nothing else takes its place."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")})
        monkeypatch.setenv(DISABLE_VARIABLE, named)

        blocked = refusal("acme")

        assert "is blocked by STRATA_DISABLE_PLUGINS" in str(blocked)
        assert ("acme-strata 1.0",) == blocked.distributions
        assert "acme_strata" not in sys.modules

    @pytest.mark.parametrize("named", ["", " , ", "acm", "strata"])
    def test_other_names_block_nothing(
        self, install: Any, store_module: Any, monkeypatch: pytest.MonkeyPatch, named: str
    ) -> None:
        """Names are compared whole."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")})
        monkeypatch.setenv(DISABLE_VARIABLE, named)

        assert "acme" == PluginSet().store("acme").store.name

    def test_built_in_plugins_can_be_blocked_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There is no privileged way."""
        monkeypatch.setenv(DISABLE_VARIABLE, "memory")

        assert "blocked" in str(refusal("memory"))


class TestDamagedDistributions:
    def test_entry_points_that_cannot_be_parsed_break_nobody_else(self, install: Any, store_module: Any) -> None:
        """They are mentioned where somebody misses a plugin."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": store_module("acme")})
        install("bad-strata", "0.3", entry_points="[strata_core.stores]\nno equals sign\n")

        assert "acme" == PluginSet().store("acme").store.name
        missing = refusal("bad")
        assert "damaged: bad-strata 0.3 (its entry points cannot be read" in str(missing)
        assert ("bad-strata 0.3",) == missing.distributions

    def test_distributions_without_metadata_still_offer_their_plugins(self, install: Any, store_module: Any) -> None:
        """What they are called is unknown, what they offer is not, and two of them are two."""
        for name in ("acme", "other"):
            module = f"{name}_strata"
            install(f"{name}-strata", metadata="", stores={name: module}, modules={module: store_module(name)})
        plugins = PluginSet()

        assert ["acme", "other"] == [plugins.store(name).store.name for name in ("acme", "other")]
        assert ("a distribution without a name",) == plugins.store("acme").plugin.distributions

    def test_damaged_distributions_of_others_do_not_matter(self, install: Any, tmp_path: Path) -> None:
        """What has no entry points of ours is not even parsed."""
        install("somebody-else", entry_points="[console_scripts]\nno equals sign\n")
        site = install("binary-junk", entry_points="x")
        (site / "binary_junk-1.0.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe\x00")

        assert "memory" == PluginSet().store("memory").store.name
