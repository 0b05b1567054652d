"""Turns at the queue's file: among the threads of a run, and among the processes that write."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from lease import jobs
from lease.db.connection import StrPath
from lease.db.locked import is_locked
from lease.db.turnstile import Turnstile

_Done = TypeVar("_Done")


class Turns:
    """Lets one thread of the run at a time use the file, when it is this process's turn.

    Reading needs a turn as well: between the commits of busy writers a reader may find no gap.
    Where the gate files of a turnstile cannot be made or locked, the processes go without: SQLite
    keeps them safe, and only their order is lost.

    Args:
        path: the queue's file.
        tell: told once, by whichever thread, of what keeps a turnstile from working.
    """

    def __init__(self, path: StrPath, tell: Callable[[OSError], object]) -> None:
        self._path = path
        self._tell = tell
        self._pen = threading.Lock()
        self._turnstile: Turnstile | None = None
        self._is_without = False

    def connect(self) -> sqlite3.Connection:
        """Open the queue, in a turn where it is locked: a stranger's file gets no gates."""
        try:
            return self._open()
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise
        return self.take(self._open)

    def take(self, work: Callable[[], _Done]) -> _Done:
        """Do something when it is this thread's turn, and return what it returns."""
        with self._pen, ExitStack() as turn:
            if not self._is_without:
                try:
                    turn.enter_context(self._gates())
                except OSError as error:
                    self._is_without = True
                    self._tell(error)
            return work()

    def close(self) -> None:
        """Leave those who wait for turns."""
        if self._turnstile is not None:
            self._turnstile.close()

    def _open(self) -> sqlite3.Connection:
        # Whoever made the queue has chosen its journal mode.
        return jobs.open_queue(self._path, create=False, journal_mode=None)

    def _gates(self) -> Turnstile:
        if self._turnstile is None:
            self._turnstile = Turnstile(self._path)
        return self._turnstile
