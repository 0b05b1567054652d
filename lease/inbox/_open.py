"""Open an inbox file, or put the inbox into the application's own database."""

import os
import sqlite3

from lease.db.connection import StrPath, connect
from lease.db.durability import make_durable
from lease.db.migrations import migrate
from lease.db.statements import statement
from lease.errors import UnusableFile

INBOX_PROBE = statement("inbox_probe")


def open_inbox(path: StrPath, *, create: bool = True) -> sqlite3.Connection:
    """Open an inbox file, creating it or bringing its schema up to date in one transaction.

    The connection has `isolation_level=None`, waits one second for a lock, and is set to
    `journal_mode=DELETE` and `synchronous=FULL`. On any failure it is closed.

    Args:
        path: a file's path, taken to the letter; never an in-memory database.
        create: make the file if it is missing, private to its user. False never makes one.

    Returns:
        A connection that the caller closes.

    Raises:
        ValueError: the path names no file.
        FileNotFoundError: `create` is False and no ordinary file is there.
        UnusableFile: the file's tables are a stranger's or from a later version, or there are
            none and `create` is False, or the durability asked for could not be had.
        sqlite3.Error: the file cannot be opened, is locked for too long, or is no database.
    """
    if not create and not os.path.isfile(path):
        raise FileNotFoundError(f"there is no inbox file at {os.fsdecode(path)!r}")
    con = connect(path, create=create)
    try:
        # First of all a stranger's file is refused, with its settings as they are.
        migrate(con, "inbox", INBOX_PROBE, create)
        make_durable(con, "delete")
    except BaseException:
        con.close()
        raise
    return con


def require_writable(path: StrPath) -> None:
    """Refuse an inbox that could only be read, of which no event could be accepted.

    Args:
        path: an existing file.

    Raises:
        UnusableFile: it may only be read, or no file be made beside it, as every change needs.
    """
    name = os.path.realpath(path)
    # Not by a transaction: SQLite begins one for writing on a file that may only be read as well.
    if not os.access(name, os.W_OK):
        raise UnusableFile("it may only be read; check its rights")
    if not os.access(os.path.dirname(name), os.W_OK):
        raise UnusableFile("its folder may only be read, and every change makes a file beside it")


def create_inbox(con: sqlite3.Connection) -> None:
    """Put the inbox's tables into a database that is already open, or bring them up to date.

    An application that keeps the inbox in its own file can make its effects in the very
    transaction that accepts the event. The connection's settings are left alone.

    Args:
        con: a connection with no transaction open.

    Raises:
        UnusableFile: the file's tables are a stranger's or from a later version.
        sqlite3.Error: the file is locked for too long or is no database.
    """
    migrate(con, "inbox", INBOX_PROBE)
