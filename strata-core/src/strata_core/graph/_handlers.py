"""How a user's function is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from strata_core.errors import InvalidInputError

__all__ = ["Handler", "HandlerError", "check_hook", "inspect_handler"]

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class HandlerError(Exception):
    """A function cannot be a handler."""


class Handler:
    """A user's function and how to call it.

    Attributes:
        call: The function.
        wants_context: Whether it is given a context beside the state.
        is_async: Whether calling it gives a coroutine.
    """

    __slots__ = ("call", "is_async", "wants_context")

    def __init__(self, call: Callable[..., Any], wants_context: bool, is_async: bool) -> None:
        self.call = call
        self.wants_context = wants_context
        self.is_async = is_async


def inspect_handler(function: object) -> Handler:
    """Find out how to call a function: with the state, or with two required positional parameters also a context.

    Raises:
        HandlerError: It cannot be called so.
    """
    if not callable(function):
        raise HandlerError(f"{function!r} cannot be called")
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object with an async __call__ is an async handler
    )
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise HandlerError("is a generator; a handler returns one state")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return Handler(function, False, is_async)
    required = sum(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
    accepted = sum(p.kind in _POSITIONAL for p in parameters)
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise HandlerError(f"requires the keyword argument {named[0]!r}, which nobody gives it")
    if required > 2:
        raise HandlerError(f"has {required} required parameters; a handler takes (state) or (state, ctx)")
    if accepted == 0 and not takes_any:
        raise HandlerError("takes no parameter; a handler takes (state) or (state, ctx)")
    return Handler(function, required == 2, is_async)


def check_hook(name: str, function: object) -> Handler:
    """Find out how to call a function that was given as an argument.

    Raises:
        InvalidInputError: It cannot be called as a handler is.
    """
    try:
        return inspect_handler(function)
    except HandlerError as error:
        raise InvalidInputError(name, str(error)) from None
