"""Finds plugins: a typed facade over pluggy, without any state of the process.

Only the plugin that serves a wanted scheme or name is imported; one that is broken breaks nobody else.
"""

from strata_core.plugins._entries import DISABLE_VARIABLE, PluginKind
from strata_core.plugins._listing import PluginInfo, PluginStatus, list_plugins
from strata_core.plugins._plugin import Plugin
from strata_core.plugins._set import PluginSet, StoreParts

__all__ = [
    "DISABLE_VARIABLE",
    "Plugin",
    "PluginInfo",
    "PluginKind",
    "PluginSet",
    "PluginStatus",
    "StoreParts",
    "list_plugins",
]
