"""Whom a server runs as: PostgreSQL and PgBouncer refuse to be root."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any, Final

import attrs

from strata_conformance.servers._errors import ServerFailedError

__all__ = ["MYSELF", "Account", "unprivileged"]


@attrs.frozen
class Account:
    """A user of this machine.

    Attributes:
        uid: The number; None is whoever runs the tests.
        gid: The number of the group.
    """

    uid: int | None = None
    gid: int | None = None

    @property
    def popen(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` that start a program as this user."""
        return {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give a folder, and all that is in it, to this user."""
        if self.uid is None or self.gid is None:
            return
        for found in (path, *path.rglob("*")):
            os.chown(found, self.uid, self.gid, follow_symlinks=False)

    def may_enter(self, folder: Path) -> bool:
        """Whether this user can reach a folder."""
        if self.uid is None:
            return os.access(folder, os.X_OK)
        return all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))


MYSELF: Final = Account()


def unprivileged() -> Account:
    """Return whoever runs the tests, or, for root, the user ``postgres`` or ``nobody``.

    Raises:
        ServerFailedError: The tests run as root on a machine that has neither.
    """
    if os.geteuid() != 0:
        return MYSELF
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_uid, found.pw_gid)
    message = "the tests run as root, as which no PostgreSQL starts, and there is no user 'postgres' or 'nobody'"
    raise ServerFailedError(message)
