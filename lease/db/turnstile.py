"""Let the processes that write to one file take turns; SQLite's own waiting knows no order.

SQLite lets the process that has just committed take the lock again at once, while the others
sleep for ever longer: one of them does all the work and the rest time out. A turnstile has two
gates, each an advisory lock on a file beside the database. Whoever is next holds the outer gate
while it waits for the inner one, and whoever writes holds the inner gate alone, so that it has to
queue up behind the next one before it may write again.

The gates bring order and no safety: that remains SQLite's. So nobody waits at them for ever; after
some patience a process goes in without its turn, past one that was stopped in a gate, and those
that know no gates never wait. A lock dies with its process. The database itself is never opened
here: closing a second descriptor of it would drop SQLite's locks.
"""

import fcntl
import os
import time
from types import TracebackType
from typing import Self

from lease.db.connection import StrPath

# Only the next one in line looks often; the others have a whole transaction's time to move up.
_INNER_PAUSE_S = 0.0001
_OUTER_PAUSE_S = 0.0005


class Turnstile:
    """A context manager that is entered for each write transaction, by one thread at a time.

    Args:
        path: an existing database file; the gates are made beside it, with its rights.
        patience_s: how long to wait for a turn before going in without one, in seconds.

    Raises:
        OSError: the database is not there, or a gate cannot be made or opened.
    """

    def __init__(self, path: StrPath, patience_s: float = 1) -> None:
        self._patience_s = patience_s
        name = os.path.realpath(os.fsdecode(path))
        # Whoever may read the database may take turns at it.
        mode = os.stat(name).st_mode & 0o666
        self._outer = _open_gate(f"{name}-gate1", mode)
        try:
            self._inner = _open_gate(f"{name}-gate2", mode)
        except BaseException:
            os.close(self._outer)
            raise

    def close(self) -> None:
        """Leave the queue for good."""
        os.close(self._outer)
        os.close(self._inner)

    def __enter__(self) -> Self:
        until = time.monotonic() + self._patience_s
        try:
            if _lock(self._outer, until, _OUTER_PAUSE_S):
                _lock(self._inner, until, _INNER_PAUSE_S)
        finally:
            fcntl.flock(self._outer, fcntl.LOCK_UN)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        fcntl.flock(self._inner, fcntl.LOCK_UN)


def _open_gate(name: str, mode: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)


def _lock(gate: int, until: float, pause_s: float) -> bool:
    """Take a gate's lock, or give up when the time has come."""
    while True:
        try:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(pause_s)
        else:
            return True
