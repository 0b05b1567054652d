"""Put a file's durability in force, and believe only what SQLite reads back."""

import sqlite3
from typing import Literal

from lease.db.statements import statement
from lease.errors import UnusableFile

DURABILITY_DELETE = statement("durability_delete")
DURABILITY_WAL = statement("durability_wal")
DURABILITY_FULL = statement("durability_full")
DURABILITY_LEVEL = statement("durability_level")

JournalMode = Literal["delete", "wal"]

_JOURNAL = {"delete": DURABILITY_DELETE, "wal": DURABILITY_WAL}
_FULL = 2


def make_durable(con: sqlite3.Connection, journal_mode: JournalMode) -> None:
    """Set a journal mode and `synchronous=FULL`, so that power loss tears no commit.

    With `wal` it undoes none either. With `delete` it may undo the newest, until the next one:
    SQLite syncs the folder after the delete that commits only at `synchronous=EXTRA`.

    Args:
        con: a connection with no transaction open.
        journal_mode: `delete` costs four syncs a commit; `wal` costs one, and adds two files.

    Raises:
        UnusableFile: SQLite kept other settings, as it does for a file that is no ordinary one.
        sqlite3.OperationalError: another connection is in the way of the change.
    """
    (mode,) = _JOURNAL[journal_mode].one(con)
    DURABILITY_FULL.none(con)
    (level,) = DURABILITY_LEVEL.one(con)
    if (mode, level) != (journal_mode, _FULL):
        raise UnusableFile(
            f"the file keeps journal_mode={mode} and synchronous={level} in place of "
            f"{journal_mode} and {_FULL}; close its other users or choose another file"
        )
