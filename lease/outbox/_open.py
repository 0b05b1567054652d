"""Put the outbox into a database: one of its own, or the application's."""

import sqlite3

from lease import checks
from lease.db.connection import StrPath, connect
from lease.db.durability import JournalMode, make_durable
from lease.db.migrations import migrate
from lease.db.statements import statement

OUTBOX_PROBE = statement("outbox_probe")


def create_outbox(con: sqlite3.Connection) -> None:
    """Create the tables of the outbox where they are missing, in one transaction.

    The connection is the application's: its settings, durability included, stay as they are,
    and so does every other table. A current file is only read.

    Args:
        con: a connection with no transaction open.

    Raises:
        UnusableFile: the file's tables of these names are a stranger's or from a later version.
        sqlite3.Error: the file is locked for too long, read-only, or no database.

    Hooks: none.
    """
    migrate(con, "outbox", OUTBOX_PROBE)


def open_outbox(path: StrPath, *, journal_mode: JournalMode | None = "wal") -> sqlite3.Connection:
    """Open a file as an outbox, creating it or bringing its schema up to date.

    The connection has `isolation_level=None`, waits one second for a lock, and is set to
    `synchronous=FULL` and the journal mode asked for, `WAL` unless told. On any failure it is
    closed.

    Args:
        path: a file's path, taken to the letter; created private to its user if missing.
        journal_mode: `wal`, `delete`, or None for the one that the file has, `delete` if new.

    Returns:
        The connection; the caller closes it.

    Raises:
        ValueError: the path names no file, or there is no such journal mode.
        UnusableFile: the file's tables of these names are a stranger's or from a later version,
            or the durability asked for could not be had.
        sqlite3.Error: the file cannot be opened, is locked for too long, or is no database.

    Warns:
        WalResetWarning: there is a write-ahead log, and this SQLite has a fault that may damage
            such a file; once a process.

    Hooks: none.
    """
    checks.journal_mode(journal_mode)
    con = connect(path)
    try:
        # First of all a stranger's file is refused, with its settings as they are.
        create_outbox(con)
        make_durable(con, journal_mode)
    except BaseException:
        con.close()
        raise
    return con
