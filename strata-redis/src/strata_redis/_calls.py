"""Commands and scripts on their way to a server, and what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import attrs

__all__ = ["COMMIT", "HEADS", "ROWS", "SET_UP", "SWEEP", "WALK", "Answer", "Call", "Lost", "Script", "ServerError"]


class ServerError(Exception):
    """What a server says that could not do what it was asked.

    Attributes:
        code: The word that it begins with: ``ERR`` where there is none better.
    """

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.code = said.partition(" ")[0]


class Lost(Exception):  # noqa: N818  # an answer like others, told to callers as one of core's errors
    """No answer came.

    Attributes:
        cause: Why.
        sent: Whether the command may have reached the server.
        busy: Nothing was wrong but that every connection was in use.
    """

    def __init__(self, cause: BaseException, *, sent: bool, busy: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.sent = sent
        self.busy = busy


Answer = bytes | int | list["Answer"] | Exception | None
"""What the server said, or why it did not: an exception is returned, since others of its batch may have gone well."""


class Script:
    """A Lua script, sent by its digest.

    Args:
        parts: The files that its text consists of; the last one names it.
    """

    def __init__(self, *parts: str) -> None:
        self.name = parts[-1]
        self.text = b"".join(files("strata_redis").joinpath("lua", f"{part}.lua").read_bytes() for part in parts)
        self.digest = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()

    def __repr__(self) -> str:
        return f"Script({self.name!r})"


COMMIT: Final = Script("index", "commit")
HEADS: Final = Script("heads")
ROWS: Final = Script("rows")
SET_UP: Final = Script("set_up")
SWEEP: Final = Script("sweep")
WALK: Final = Script("walk")


@attrs.define(eq=False)
class Call:
    """A command, or a script, that one server can do alone.

    Attributes:
        tag: The hash tag of all its keys.
        arguments: Of the command with its name; of the script without its keys.
        script: None for a command.
        keys: Of the script.
    """

    tag: bytes
    arguments: Sequence[bytes]
    script: Script | None = None
    keys: Sequence[bytes] = ()

    def words(self, *, in_full: bool = False, only_reads: bool = False) -> Sequence[bytes]:
        """Return what is sent.

        Args:
            in_full: Send the script's text, since the server does not know it.
            only_reads: Have the server make sure that the script writes nothing.
        """
        if self.script is None:
            return self.arguments
        name, body = (b"EVAL", self.script.text) if in_full else (b"EVALSHA", self.script.digest)
        return (name + b"_RO" if only_reads else name, body, b"%d" % len(self.keys), *self.keys, *self.arguments)
