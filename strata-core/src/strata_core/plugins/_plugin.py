"""One plugin, registered and asked, so that whatever goes wrong is told with its name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import pluggy

from strata_core import hookspecs
from strata_core.errors import PluginError
from strata_core.hookspecs import (
    PORT_VERSION,
    PROJECT_NAME,
    BlobProvider,
    QueryProvider,
    RetentionProvider,
    StoreProvider,
    WrapperProvider,
)
from strata_core.plugins._entries import Entry

__all__ = ["HOOKS", "Plugin", "Provider", "describe", "import_target"]

Provider = StoreProvider | QueryProvider | RetentionProvider | BlobProvider | WrapperProvider
P = TypeVar("P", bound=Provider)

HOOKS: Final[dict[type[Any], str]] = {
    StoreProvider: "strata_checkpoint_store",
    QueryProvider: "strata_checkpoint_query",
    RetentionProvider: "strata_checkpoint_retention",
    BlobProvider: "strata_blob_store",
    WrapperProvider: "strata_wrap_checkpoint_store",
}
_FACTORIES: Final[dict[type[Any], str]] = {
    StoreProvider: "open",
    QueryProvider: "bind",
    RetentionProvider: "bind",
    BlobProvider: "open",
    WrapperProvider: "wrap",
}
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")


class _Manager(pluggy.PluginManager):
    """Refuses async hooks, which pluggy would hand back as coroutines."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        options = super().parse_hookimpl_opts(plugin, name)
        if options is not None and _is_async(getattr(plugin, name)):
            raise pluggy.PluginValidationError(
                plugin,
                f"{name} is async, and hooks are synchronous: return a record, and leave the waiting to what it opens",
            )
        return options


class Plugin:
    """A module or object with hooks.

    It has a manager of its own: neither the order of plugins, nor two that compare equal, nor the failure of one can
    touch another, and every answer is known to be its own.

    Args:
        target: The module or object.
        entry: Where it was found; None for one that the application passed.

    Raises:
        PluginError: A hook does not exist, is async, or asks for arguments.
    """

    def __init__(self, target: object, entry: Entry | None = None) -> None:
        self.target = target
        self.label = str(entry) if entry is not None else f"plugin {_name_of(target)}"
        self.distributions = () if entry is None else (entry.source,)
        self._answers: dict[type[Any], Sequence[Any]] = {}
        self._manager = _Manager(PROJECT_NAME)
        self._manager.add_hookspecs(hookspecs)
        try:
            self._manager.register(target, name=self.label)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise self.error(f"does not fit the hooks: {error}") from error

    def error(self, problem: str) -> PluginError:
        """Return an error that names this plugin."""
        return PluginError(f"{self.label} {problem}", distributions=self.distributions)

    def offers(self, kind: type[P]) -> Sequence[P]:
        """Ask the hook for these providers, once, and return what it answers.

        Raises:
            PluginError: The hook fails, or answers with something else, or was written for other ports.
        """
        if kind not in self._answers:
            hook = HOOKS[kind]
            try:
                answers = getattr(self._manager.hook, hook)()
            except (Exception, SystemExit) as error:
                raise self.error(f"fails in {hook}: {describe(error)}") from error
            for answer in answers:
                self._check(answer, kind)
            self._answers[kind] = tuple(answers)
        return self._answers[kind]

    def _check(self, answer: object, kind: type[P]) -> None:
        hook = HOOKS[kind]
        if not isinstance(answer, kind):
            if isinstance(answer, Coroutine):
                answer.close()  # else Python warns that nobody awaited it
            raise self.error(f"returns a {type(answer).__name__} from {hook}, not a {kind.__name__}")
        if answer.port_version != PORT_VERSION:
            raise self.error(
                f"speaks port version {answer.port_version!r}, this strata-core speaks {PORT_VERSION}: "
                "install releases that fit together"
            )
        if type(answer.name) is not str or not answer.name:
            raise self.error(f"returns a {kind.__name__} from {hook} whose name is {answer.name!r}, not a str")
        factory = _FACTORIES[kind]
        function: Callable[..., Any] = getattr(answer, factory)
        if not callable(function) or _is_async(function):
            raise self.error(f"returns a {kind.__name__} from {hook} whose {factory} is not a synchronous callable")
        if isinstance(answer, StoreProvider | BlobProvider):
            bad = [scheme for scheme in answer.schemes if type(scheme) is not str or _SCHEME.fullmatch(scheme) is None]
            if bad or not answer.schemes:
                raise self.error(f"returns a {kind.__name__} from {hook} with bad schemes {answer.schemes!r}")
        if isinstance(answer, StoreProvider) and not isinstance(answer.options_class, type | None):
            raise self.error(f"returns a {kind.__name__} from {hook} whose options_class is no class")


def import_target(entry: Entry) -> object:
    """Import what an entry point names.

    Raises:
        PluginError: It cannot be imported, for whatever reason.
    """
    try:
        return entry.point.load()
    except (Exception, SystemExit) as error:
        raise PluginError(f"{entry} cannot be imported: {describe(error)}", distributions=(entry.source,)) from error


def describe(error: BaseException) -> str:
    """Return an error as one line with its class."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _name_of(target: object) -> str:
    name = getattr(target, "__name__", None)
    return repr(name) if isinstance(name, str) else f"object of {type(target).__qualname__}"
