"""What all servers have in common: they start, stop, crash, freeze and come back on the same data and port."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Literal, Self, TypeAlias

from strata_conformance.servers._account import MYSELF, Account
from strata_conformance.servers._errors import ServerFailedError
from strata_conformance.servers._folder import ServerFolder
from strata_conformance.servers._ports import HOST, free_port
from strata_conformance.servers._processes import children, has_ended, send
from strata_conformance.servers._waiting import PATIENCE, wait_until

__all__ = ["Protocol", "Server"]

Protocol: TypeAlias = Literal["postgres", "redis", "raw"]


class Server(ABC):
    """A server for tests, in a temporary folder and on a free loopback port; or an existing one.

    The context manager starts it and, at its end, stops it and removes what it left.  It also ends, and its folder
    goes, when the process that started it is killed.

    Where the environment variable of its kind has a URL, that server is used instead and nothing is started, unless
    the test needs one of its own: `own`, `durable` and `settings` say so.

    Args:
        durable: Write everything through to the disk before it is acknowledged, so that nothing acknowledged is lost
            by `kill`.  By default nothing is written through, and the folder is in memory where that has room and
            TMPDIR names no other place.
        own: Never use an existing server; for tests that stop, crash or freeze it.
        settings: More settings of the server, by name.

    Attributes:
        host: Where it listens.
        port: Where it listens; the same for its whole life.
    """

    product: ClassVar[str]
    """What it is called, in messages."""
    variable: ClassVar[str | None] = None
    """The environment variable with the URL of an existing one; None: there is no use for one."""
    protocol: ClassVar[Protocol]
    """How one speaks to it."""
    _end_at_once: ClassVar = signal.SIGKILL
    _end: ClassVar = signal.SIGTERM

    def __init__(
        self, *, durable: bool = False, own: bool = False, settings: Mapping[str, str | int] | None = None
    ) -> None:
        shared = None if own or durable or settings or self.variable is None else os.environ.get(self.variable)
        self.durable: Final = durable
        self.settings: Final = dict(settings or {})
        self.host = HOST
        self.port = 0
        self._existing = shared or None
        self._folder: ServerFolder | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._account = MYSELF
        self._stopped: list[int] = []

    @property
    @abstractmethod
    def url(self) -> str:
        """Where a client connects, as SQLAlchemy and the drivers write it."""

    @property
    def is_own(self) -> bool:
        """Whether the server belongs to this object; an existing one does not."""
        return self._existing is None

    @property
    def is_running(self) -> bool:
        """Whether the server's process is there; for an existing server, always."""
        return not self.is_own or (self._process is not None and self._process.poll() is None)

    @property
    def pid(self) -> int:
        """The server's process.

        Raises:
            RuntimeError: It does not run, or is not its own.
        """
        self._must_be_own("tell its process")
        if self._process is None:
            message = f"this {self.product} does not run"
            raise RuntimeError(message)
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where its data and its log are.

        Raises:
            RuntimeError: It was never started, or is not its own.
        """
        if self._folder is None:
            message = f"this {self.product} has no folder: it is not its own, or was not started"
            raise RuntimeError(message)
        return self._folder.path

    @property
    def log(self) -> str:
        """What the server has logged since its first start."""
        path = self.folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def start(self) -> Self:
        """Start the server, and return when it answers; the second time on the same data and the same port.

        Raises:
            MissingServerError: It is not installed.
            ServerFailedError: It did not come up.
            RuntimeError: It runs.
        """
        if not self.is_own:
            self._reach()
            return self
        if self.is_running:
            message = f"this {self.product} runs already"
            raise RuntimeError(message)
        if self._folder is not None:
            return self._started(is_first=False)
        self._account = self._runs_as()
        self._folder = ServerFolder(
            type(self).__name__.lower(), self._account, self._end_at_once, in_memory=not self.durable
        )
        try:
            self._prepare()
            return self._started(is_first=True)
        except BaseException:
            self.close()  # nobody may, who has not got it
            raise

    def _started(self, *, is_first: bool) -> Self:
        for attempt in range(5):
            if is_first:  # the port can be taken between the look and the start
                self.port = self._free_port()
            if self._came_up():
                return self
            if attempt == 4 or not (is_first or "in use" in self.log[-2000:]):
                break
        message = f"{self.product} did not start; the end of its log:\n{self.log[-2000:]}"
        raise ServerFailedError(message)

    def stop(self, *, immediate: bool = False) -> None:
        """Stop the server; its data stay for the next `start`.

        Args:
            immediate: Do not finish or tidy up what is under way, as at a power cut that the disk survives.

        Raises:
            ServerFailedError: It did not stop.
            RuntimeError: It is not its own.
        """
        self._must_be_own("stop it")
        if self._process is None:
            return
        self.resume()
        self._process.send_signal(self._end_at_once if immediate else self._end)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            message = f"{self.product} did not stop, so it was killed; the end of its log:\n{self.log[-2000:]}"
            raise ServerFailedError(message) from None
        self._has_ended()

    def kill(self) -> None:
        """Crash the server: every process of it gets SIGKILL at once; its data stay for the next `start`."""
        self._must_be_own("kill it")
        if self._process is None:
            return
        self._process.send_signal(signal.SIGSTOP)  # so that it starts no more processes
        started = children(self._process.pid)
        send(signal.SIGKILL, [*started, self._process.pid])
        self._process.wait(PATIENCE)
        wait_until(lambda: all(map(has_ended, started)))
        self._has_ended()

    def pause(self) -> None:
        """Freeze the server: its connections stay open, and nothing answers until `resume`."""
        self._must_be_own("pause it")
        send(signal.SIGSTOP, [self.pid])  # first, so that it starts no more processes
        self._stopped = children(self.pid)
        send(signal.SIGSTOP, self._stopped)
        self._noted([self.pid, *self._stopped])

    def resume(self) -> None:
        """Let a frozen server go on with what it was doing."""
        self._must_be_own("resume it")
        send(signal.SIGCONT, [*self._stopped, self.pid])
        self._stopped = []
        self._noted([self.pid])

    def close(self) -> None:
        """Stop the server if it runs, and remove its folder.  Closing again does nothing."""
        if self._folder is None:
            return
        try:
            self.stop(immediate=True)
        finally:
            self._folder.remove()
            self._folder = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"{self.host}:{self.port}" if self.is_own else f"the one in {self.variable}"
        return f"<{type(self).__name__} {where}>"

    @abstractmethod
    def _prepare(self) -> None:
        """Find the programs and make the data, once, before the first start."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Return the command that runs the server in the foreground, on the port."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether this very server, not another one on its port, can be used."""

    def _reach(self) -> None:  # noqa: B027  # one for which no variable exists never gets here
        """Make sure that the existing server can be used."""

    def _runs_as(self) -> Account:
        return MYSELF

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return kept | {"LC_ALL": "C", "TZ": "UTC", "HOME": str(self.folder)}

    def _free_port(self) -> int:
        return free_port()

    def _came_up(self) -> bool:
        """Start the process and wait for it; return whether it can be used, leaving none that cannot."""
        with (self.folder / "log").open("ab") as log:
            self._process = process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self._environment(),
                start_new_session=True,  # so that a Ctrl-C in a terminal reaches the tests only, which then stop it
                **self._account.popen,
            )
        self._noted([process.pid])
        wait_until(lambda: process.poll() is not None or self._answers())
        if process.poll() is None and self._answers():
            return True
        self.kill()
        return False

    def _has_ended(self) -> None:
        self._process = None
        self._stopped = []
        self._noted([])

    def _noted(self, pids: list[int]) -> None:
        assert self._folder is not None
        self._folder.note(pids)

    def _must_be_own(self, wish: str) -> None:
        if not self.is_own:
            message = (
                f"this {self.product} is the one in {self.variable}, so a test must not {wish}: ask for"
                f" {type(self).__name__}(own=True)"
            )
            raise RuntimeError(message)
