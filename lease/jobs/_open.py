"""Open a queue file with its durability in force and its schema current."""

import os
import sqlite3

from lease import checks
from lease.db.connection import StrPath, connect
from lease.db.durability import JournalMode, make_durable
from lease.db.migrations import migrate
from lease.db.statements import statement

OPEN_PROBE = statement("open_probe")


def open_queue(
    path: StrPath, *, create: bool = True, journal_mode: JournalMode | None = "delete"
) -> sqlite3.Connection:
    """Open a queue file, creating it or bringing its schema up to date in one transaction.

    Jobs and audit rows that are there stay as they are. The connection has
    `isolation_level=None`, waits one second for a lock, and is set to `synchronous=FULL` and
    the journal mode asked for, `DELETE` unless told. On any failure it is closed.

    The journal mode is a property of the file: all who have it open share it. With `wal` a
    commit takes one sync and not four, and readers and the writer do not wait for each other;
    beside the file there are then two more, which belong to it and must never be copied,
    moved or removed apart from it, and all its users must be on one machine. A file that others
    hold in a write-ahead log is never switched back; one that has none is switched while nobody
    is in a transaction, and the others follow with their next one.

    Args:
        path: a file's path, taken to the letter; never an in-memory database.
        create: make the file if it is missing, private to its user. False never makes one.
        journal_mode: `delete`, `wal`, or None for the one that the file has, `delete` if new.

    Raises:
        ValueError: the path names no file, or there is no such journal mode.
        FileNotFoundError: `create` is False and no ordinary file is there.
        UnusableFile: the file's tables are a stranger's or from a later version, or there are
            none and `create` is False, or the durability asked for could not be had, for
            instance because others have the file open with the other journal mode.
        sqlite3.Error: the file cannot be opened, is locked for too long, or is no database.

    Warns:
        WalResetWarning: there is a write-ahead log, and this SQLite has a fault that may damage
            such a file; once a process.

    Source: contract, step 2.
    """
    checks.journal_mode(journal_mode)
    if not create and not os.path.isfile(path):
        raise FileNotFoundError(f"there is no queue file at {os.fsdecode(path)!r}")
    con = connect(path, create=create)
    try:
        # First of all a stranger's file is refused, with its settings as they are.
        migrate(con, "queue", OPEN_PROBE, create)
        make_durable(con, journal_mode)
    except BaseException:
        con.close()
        raise
    return con


def create_queue(con: sqlite3.Connection) -> None:
    """Put the queue's tables into a database that is already open, or bring them up to date.

    An application that keeps the queue in its own file can commit to both in one transaction.
    The connection's settings are left alone.

    Args:
        con: a connection with no transaction open.

    Raises:
        UnusableFile: the file's tables are a stranger's or from a later version.
        sqlite3.Error: the file is locked for too long or is no database.
    """
    migrate(con, "queue", OPEN_PROBE)
