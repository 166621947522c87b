"""Whatever is wrong with a plugin is told with its distribution, version, entry point and cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from strata_core.errors import PluginError
from strata_core.hookspecs import PORT_VERSION, QueryProvider, StoreProvider, WrapperProvider, hookimpl
from strata_core.plugins import PluginSet

HEAD = """
    from strata_core.hookspecs import StoreProvider, hookimpl

    def provider(**changes):
        fields = dict(name="bad", schemes=("bad",), port_version=1, open=lambda url, options: None)
        return StoreProvider(**{**fields, **changes})

"""
HOOK = HEAD + "    @hookimpl\n    def strata_checkpoint_store():\n        "


class TestBrokenPlugins:
    @pytest.mark.parametrize(
        ("source", "said", "cause"),
        [
            ("import not_installed_anywhere", "cannot be imported: ModuleNotFoundError: No module named", ImportError),
            ("raise SystemExit(3)", "cannot be imported: SystemExit: 3", SystemExit),
            ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero", ZeroDivisionError),
            ("def broken(:", "cannot be imported: SyntaxError: ", SyntaxError),
            (
                HOOK + "1 / 0",
                "fails in strata_checkpoint_store: ZeroDivisionError: division by zero",
                ZeroDivisionError,
            ),
            (HOOK + "raise SystemExit", "fails in strata_checkpoint_store: SystemExit", SystemExit),
            (HOOK + "return {}", "returns a dict from strata_checkpoint_store, not a StoreProvider", None),
            (HOOK + "return 'bad'", "returns a str from strata_checkpoint_store, not a StoreProvider", None),
            (HOOK + "return None", "offers nothing: no function strata_checkpoint_store is marked with", None),
            (
                HEAD + "    def strata_checkpoint_store():\n        return provider()",
                "offers nothing: no function strata_checkpoint_store is marked",
                None,
            ),
            ("", "offers nothing: no function strata_checkpoint_store is marked", None),
            (HOOK + "return provider(port_version=2)", "speaks port version 2, this strata-core speaks 1", None),
            (HOOK + "return provider(port_version='1')", "speaks port version '1', this strata-core speaks 1", None),
            (HOOK + "return provider(name='')", "whose name is '', not a str", None),
            (HOOK + "return provider(name=None)", "whose name is None, not a str", None),
            (HOOK + "return provider(schemes=())", "with bad schemes ()", None),
            (HOOK + "return provider(schemes=('bad', 'Bad'))", "with bad schemes ('bad', 'Bad')", None),
            (HOOK + "return provider(schemes=('bad:',))", "with bad schemes ('bad:',)", None),
            (HOOK + "return provider(schemes=(1,))", "with bad schemes (1,)", None),
            (
                HOOK + "return provider(schemes=('good',))",
                "offers good in strata_checkpoint_store, but not 'bad'",
                None,
            ),
            (HOOK + "return provider(open='x')", "whose open is not a synchronous callable", None),
            (HOOK + "return provider(options_class='Options')", "whose options_class is no class", None),
            (HOOK + "return provider(nmae='bad')", "fails in strata_checkpoint_store: TypeError: ", TypeError),
        ],
    )
    @pytest.mark.filterwarnings("ignore::SyntaxWarning")  # one of the plugins is meant to be bad Python
    def test_the_error_names_the_plugin_and_the_cause(
        self, install: Any, source: str, said: str, cause: type[BaseException] | None
    ) -> None:
        """Whoever reads it knows which package to blame and where to look."""
        install("bad-strata", "0.3", stores={"bad": "bad_strata"}, modules={"bad_strata": source})

        with pytest.raises(PluginError) as refused:
            PluginSet().store("bad")

        assert str(refused.value).startswith(
            "plugin 'bad' of bad-strata 0.3 (entry point 'bad_strata' in strata_core.stores) "
        )
        assert said in str(refused.value)
        assert ("bad-strata 0.3",) == refused.value.distributions
        assert isinstance(refused.value.__cause__, cause if cause is not None else type(None))

    def test_a_missing_attribute_is_an_import_that_fails(self, install: Any) -> None:
        """So is a module that is not in the distribution."""
        install("bad-strata", stores={"bad": "bad_strata:plugin", "worse": "worse_strata"}, modules={"bad_strata": ""})

        for scheme in ("bad", "worse"):
            with pytest.raises(PluginError, match="cannot be imported"):
                PluginSet().store(scheme)

    def test_an_interrupt_is_not_swallowed(self, install: Any) -> None:
        """Ctrl-C during a slow import stops the program, as always."""
        install("bad-strata", stores={"bad": "bad_strata"}, modules={"bad_strata": "raise KeyboardInterrupt"})

        with pytest.raises(KeyboardInterrupt):
            PluginSet().store("bad")

    def test_a_hook_of_another_port_does_not_matter(self, install: Any, store_module: Any) -> None:
        """A plugin whose blob hook fails still opens stores."""
        source = store_module("acme") + (
            "\n    @hookimpl\n    def strata_blob_store():\n        raise RuntimeError('no driver')\n"
        )
        install(
            "acme-strata",
            stores={"acme": "acme_strata"},
            blobs={"acme": "acme_strata"},
            modules={"acme_strata": source},
        )
        plugins = PluginSet()

        assert "acme" == plugins.store("acme").store.name
        with pytest.raises(PluginError, match="fails in strata_blob_store: RuntimeError: no driver"):
            plugins.blobs("acme")

    def test_a_port_version_of_another_release_is_refused_with_both_numbers(
        self, install: Any, store_module: Any
    ) -> None:
        """The store never comes to be opened."""
        install(
            "acme-strata",
            stores={"acme": "acme_strata"},
            modules={"acme_strata": store_module("acme", port_version=PORT_VERSION + 6)},
        )

        with pytest.raises(PluginError, match=r"acme-strata 1\.0 .*speaks port version 7, this strata-core speaks 1"):
            PluginSet().store("acme")


class TestHooks:
    def test_async_hooks_are_refused(self) -> None:
        """Nobody would await them; the message says what to do instead."""

        class Plugin:
            @hookimpl
            async def strata_checkpoint_store(self) -> StoreProvider | None:
                return None

        with pytest.raises(PluginError, match="strata_checkpoint_store is async, and hooks are synchronous"):
            PluginSet([Plugin()])

    def test_a_hook_that_returns_a_coroutine_is_refused(self) -> None:
        """Also without a warning that nobody awaited it."""

        async def later() -> None: ...

        class Plugin:
            @hookimpl
            def strata_checkpoint_store(self) -> Any:
                return later()

        with pytest.raises(PluginError, match="returns a coroutine from strata_checkpoint_store, not a StoreProvider"):
            PluginSet([Plugin()]).store("x")

    def test_an_async_factory_is_refused(self) -> None:
        """What waits belongs into what it opens."""

        async def open_it(url: str, options: object) -> None: ...

        class Plugin:
            @hookimpl
            def strata_checkpoint_store(self) -> Any:
                return StoreProvider("x", ("x",), 1, open_it)  # type: ignore[arg-type]

        with pytest.raises(PluginError, match="whose open is not a synchronous callable"):
            PluginSet([Plugin()]).store("x")

    def test_a_typing_error_in_a_hooks_name_is_found(self) -> None:
        """It would never be called, and nobody would know why."""

        class Plugin:
            @hookimpl
            def strata_checkpoint_stroe(self) -> None: ...

        with pytest.raises(PluginError, match="strata_checkpoint_stroe"):
            PluginSet([Plugin()])

    def test_a_hook_that_asks_for_arguments_is_refused(self) -> None:
        """Hooks take none."""

        class Plugin:
            @hookimpl
            def strata_checkpoint_store(self, url: str) -> None: ...

        with pytest.raises(PluginError, match="url"):
            PluginSet([Plugin()])

    @pytest.mark.parametrize("layer", ["rows", None])
    def test_a_wrapper_of_an_unknown_layer_is_refused(self, layer: Any) -> None:
        """It could be put nowhere."""

        class Plugin:
            @hookimpl
            def strata_wrap_checkpoint_store(self) -> Any:
                return WrapperProvider("x", layer, lambda store: store, 1)

        with pytest.raises(PluginError, match="fails in strata_wrap_checkpoint_store: ValueError"):
            PluginSet([Plugin()]).wrapper("x")


def serving(name: str, *schemes: str, query: str | None = None) -> SimpleNamespace:
    """Return a plugin object that serves a store, a query, or both."""
    hooks: dict[str, Any] = {"__name__": f"{name}_module"}
    if schemes:

        @hookimpl(specname="strata_checkpoint_store")
        def store() -> StoreProvider:
            return StoreProvider(name, schemes, 1, lambda url, options: None)  # type: ignore[arg-type,return-value]

        hooks["store"] = store
    if query is not None:

        @hookimpl(specname="strata_checkpoint_query")
        def queries() -> QueryProvider:
            return QueryProvider(query, 1, lambda store: store)

        hooks["queries"] = queries
    return SimpleNamespace(**hooks)


class TestPassedPlugins:
    def test_a_passed_plugin_needs_no_entry_point(self) -> None:
        """Tests and applications hand it over."""
        assert "acme" == PluginSet([serving("acme", "acme")]).store("acme").store.name

    def test_a_passed_plugin_comes_before_an_installed_one(self, install: Any) -> None:
        """The installed one is not even imported, so it may be broken or in conflict."""
        install("acme-strata", stores={"acme": "acme_strata"}, modules={"acme_strata": "raise SystemExit(3)"})

        assert "mine" == PluginSet([serving("mine", "acme")]).store("acme").store.name

    def test_what_a_passed_plugin_does_not_serve_is_looked_for_among_the_installed(self) -> None:
        """It adds to them."""
        assert "memory" == PluginSet([serving("acme", "acme")]).store("memory").store.name

    def test_two_passed_plugins_with_one_scheme_are_an_error(self) -> None:
        """The order of the list decides nothing."""
        plugins = PluginSet([serving("red", "acme"), serving("blue", "acme")])

        with pytest.raises(
            PluginError, match="two passed plugins serve the store for 'acme' URLs: plugin 'red_module'"
        ):
            plugins.store("acme")

    def test_the_same_plugin_twice_counts_once(self) -> None:
        """It is one object."""
        plugin = serving("acme", "acme")

        assert "acme" == PluginSet([plugin, plugin]).store("acme").store.name

    def test_plugins_that_compare_equal_or_cannot_be_hashed_are_still_two(self) -> None:
        """Records make fine plugins."""

        @attrs.define
        class Plugin:
            dialect: str = "x"

            @hookimpl
            def strata_checkpoint_store(self) -> StoreProvider:
                return StoreProvider("acme", ("acme",), 1, lambda url, options: None)  # type: ignore[arg-type,return-value]

        assert 2 == len(PluginSet([Plugin(), Plugin()]).passed)

    def test_the_query_of_a_store_may_be_passed_apart(self) -> None:
        """It says whose it is by the store's name."""
        plugins = PluginSet([serving("acme", "acme"), serving("q", query="acme"), serving("other", query="other")])

        query = plugins.store("acme").query

        assert query is not None
        assert "acme" == query.name

    def test_two_queries_of_one_store_are_an_error(self) -> None:
        """The order of the list decides nothing here either."""
        plugins = PluginSet([serving("acme", "acme", query="acme"), serving("q", query="acme")])

        with pytest.raises(PluginError, match="strata_checkpoint_query of the store 'acme' is offered twice"):
            plugins.store("acme")
