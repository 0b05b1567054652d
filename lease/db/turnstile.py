"""Let the processes that write to one file take turns; SQLite's own waiting knows no order.

SQLite lets the process that has just committed take the lock again at once, while the others
sleep for ever longer: one of them does all the work and the rest time out. A turnstile has two
gates, each an advisory lock on a file beside the database. Whoever is next holds the outer gate
while it waits for the inner one, and whoever writes holds the inner gate alone, so that it has to
queue up behind the next one before it may write again.

The gates bring order and no safety: that remains SQLite's. So nobody waits at them for ever; after
some patience a process goes in without its turn, past one that was stopped in a gate, and has less
patience with that gate until it has found it open again. Those that know no gates never wait. A
lock dies with its process. The database itself is never opened here: closing a second descriptor of
it would drop SQLite's locks.
"""

import fcntl
import os
import time
from types import TracebackType
from typing import Self

from lease.db.connection import StrPath

# Only the next one in line looks often; the others have a whole transaction's time to move up.
_INNER_PAUSE_S = 0.00005
_OUTER_PAUSE_S = 0.0005

# At a gate that stayed shut: ten times as many transactions, and still longer than a line of
# other processes takes that have been served meanwhile.
_LESS_PATIENCE = 0.1


class Turnstile:
    """A context manager that is entered for each write transaction, by one thread at a time.

    Args:
        path: an existing database file; the gates are made beside it, with its rights.
        patience_s: how long to wait at each gate before going in without a turn, in seconds.

    Raises:
        OSError: the database is not there, or a gate cannot be made or opened.
    """

    def __init__(self, path: StrPath, patience_s: float = 1) -> None:
        name = os.path.realpath(os.fsdecode(path))
        # Whoever may read the database may take turns at it.
        mode = os.stat(name).st_mode & 0o666
        self._outer = _Gate(f"{name}-gate1", mode, patience_s, _OUTER_PAUSE_S)
        try:
            self._inner = _Gate(f"{name}-gate2", mode, patience_s, _INNER_PAUSE_S)
        except BaseException:
            self._outer.close()
            raise

    def close(self) -> None:
        """Leave the queue for good."""
        self._outer.close()
        self._inner.close()

    def __enter__(self) -> Self:
        try:
            self._outer.lock()
            self._inner.lock()
        finally:
            self._outer.unlock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._inner.unlock()


class _Gate:
    """One advisory lock, on a file that stays there when nobody needs it any more."""

    def __init__(self, name: str, mode: int, patience_s: float, pause_s: float) -> None:
        # Not waiting concerns a pipe of that name, which would not open before somebody wrote.
        flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        self._file = os.open(name, flags, mode)
        self._longest_s = self._patience_s = patience_s
        self._pause_s = pause_s

    def close(self) -> None:
        os.close(self._file)

    def lock(self) -> None:
        """Take the lock, or give up when patience ends."""
        until = time.monotonic() + self._patience_s
        while not self._try_to_lock():
            if time.monotonic() >= until:
                self._patience_s = self._longest_s * _LESS_PATIENCE
                return
            time.sleep(self._pause_s)
        self._patience_s = self._longest_s

    def unlock(self) -> None:
        """Let go of the lock, if it was taken."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def _try_to_lock(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
