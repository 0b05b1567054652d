"""Copy a queue that is at work into a new file."""

import os
import sqlite3
from contextlib import closing, suppress

from lease.db.connection import BESIDE, StrPath, connect
from lease.db.durability import make_durable, mode_in_force
from lease.errors import UnusableFile
from lease.jobs._integrity import integrity_check
from lease.jobs._stats import Stats, stats
from lease.jobs._tally import tally_check
from lease.jobs._tree import tree_check

# A step is a millisecond or so, after which a waiting writer takes its turn.
_STEP_PAGES = 256
_ALL_PAGES = -1
_PAUSE_S = 0.01

# Each change by others makes a copy in steps begin anew; a busy queue would never let it end.
_MAX_RESTARTS = 3

# In a row, ten seconds in all: SQLite waits only once in a copy as the connection was told to.
_MAX_REFUSALS = 1000


def backup(con: sqlite3.Connection, path: StrPath) -> Stats:
    """Copy a queue into a new file while workers go on, and prove the copy sound.

    The copy is the queue at one moment. It is private to its user and one file, with
    `journal_mode=DELETE` whatever the original has. Writers of an original with a write-ahead log
    never wait for it; others wait for a step of 256 pages, or, where their changes have made the
    copy begin anew three times, once for all of it.

    To restore, stop every worker and application that uses the queue, remove what lies beside
    its file under the names `-journal`, `-wal` and `-shm`, and move the copy into its place.
    Leases of the copy end by themselves, and their jobs are then claimed again. A job that was
    delivered after the copy was made is open in it and is sent once more, maybe under a token
    that another delivery bore: the receiver must recognise its id, which an inbox that is as new
    as ever does. What was enqueued since is lost unless an outbox still holds it.

    Args:
        con: a connection with no transaction open; only read from.
        path: where the copy is made; nothing may be there.

    Returns:
        What `stats` counts in the copy.

    Raises:
        FileExistsError: something is at `path`, or a journal beside it.
        OSError: no file can be made at `path`.
        UnusableFile: the copy is not sound, since the original is not.
        sqlite3.ProgrammingError: the connection has a transaction open.
        sqlite3.OperationalError: the original stays locked for ten seconds, or the disk is full.

        Whatever is raised, no copy is left.

    Hooks: none.
    """
    if con.in_transaction:
        raise sqlite3.ProgrammingError(
            "the connection has an open transaction; commit or roll it back first"
        )
    name = os.path.abspath(os.fsdecode(path))
    for each in BESIDE:
        if os.path.lexists(name + each):
            # SQLite would take it for the new file's own and play it back.
            raise FileExistsError(f"{name}{each} is there already; remove it or name another file")
    # Not open: no descriptor of a database may be closed that SQLite did not open itself.
    os.mknod(name, 0o600)
    try:
        with closing(connect(name, create=False)) as copy:
            _fill(con, copy)
            make_durable(copy, "delete")
            _verify(copy)
            counted = stats(copy)
        _sync_folder(name)
    except BaseException:
        _remove(name)
        raise
    return counted


def _fill(con: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    # A reader of a write-ahead log is in nobody's way, and never has to begin anew.
    if mode_in_force(con) != "wal":
        with suppress(_TooBusy):
            con.backup(copy, pages=_STEP_PAGES, progress=_Watch(), sleep=_PAUSE_S)
            return
    con.backup(copy, pages=_ALL_PAGES, progress=_Watch(), sleep=_PAUSE_S)


class _TooBusy(Exception):
    """The original changes faster than it can be copied in steps."""


class _Watch:
    """Follows a copy's progress, and ends one that gets nowhere."""

    def __init__(self) -> None:
        self._restarts = 0
        self._refusals = 0
        self._before: int | None = None

    def __call__(self, status: int, remaining: int, total: int) -> None:
        del total
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            self._refusals += 1
            if self._refusals == _MAX_REFUSALS:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = status
                raise error
            return
        self._refusals = 0
        if self._before is not None and remaining >= self._before:
            self._restarts += 1
            if self._restarts == _MAX_RESTARTS:
                raise _TooBusy
        self._before = remaining


def _verify(copy: sqlite3.Connection) -> None:
    for fault in integrity_check(copy):
        raise UnusableFile(f"the copy is damaged as the file itself is: {fault}; go back to a copy")
    for fault in tree_check(copy):
        raise UnusableFile(f"the copy's tree is as faulty as the file's own: {fault}")
    for fault in tally_check(copy):
        raise UnusableFile(f"the copy's tally is as faulty as the file's own: {fault}")


def _sync_folder(name: str) -> None:
    """Make the new name, and the end of its journal, outlast a loss of power."""
    folder = os.open(os.path.dirname(name), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _remove(name: str) -> None:
    for each in ("", *BESIDE):
        with suppress(FileNotFoundError):
            os.unlink(name + each)
