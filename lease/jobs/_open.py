"""Open a queue file with its durability in force and its schema current."""

import os
import sqlite3

from lease.db.connection import StrPath, connect
from lease.db.durability import make_durable
from lease.db.migrations import migrate
from lease.db.statements import statement

OPEN_PROBE = statement("open_probe")


def open_queue(path: StrPath, *, create: bool = True) -> sqlite3.Connection:
    """Open a queue file, creating it or bringing its schema up to date in one transaction.

    Jobs and audit rows that are there stay as they are. The connection has
    `isolation_level=None`, waits one second for a lock, and is set to `journal_mode=DELETE`
    and `synchronous=FULL`. On any failure it is closed.

    Args:
        path: a file's path, taken to the letter; never an in-memory database.
        create: make the file if it is missing, private to its user. False never makes one.

    Raises:
        ValueError: the path names no file.
        FileNotFoundError: `create` is False and no ordinary file is there.
        UnusableFile: the file's tables are a stranger's or from a later version, or the
            durability asked for could not be had.
        sqlite3.Error: the file cannot be opened, is locked for too long, or is no database.

    Source: contract, step 2.
    """
    if not create and not os.path.isfile(path):
        raise FileNotFoundError(f"there is no queue file at {os.fsdecode(path)!r}")
    con = connect(path, create=create)
    try:
        make_durable(con, "delete")
        create_queue(con)
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
