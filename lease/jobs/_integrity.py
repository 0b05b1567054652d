"""Read a whole file for damage."""

import sqlite3

from lease.db.statements import statement

INTEGRITY_CHECK = statement("integrity_check")

_SOUND = ["ok"]
_PRIMARY = 0xFF


def integrity_check(con: sqlite3.Connection) -> list[str]:
    """Report what is damaged in a file.

    A file without a write-ahead log takes no commit while it is read.

    Args:
        con: a connection to a database; only read from.

    Returns:
        One line a fault, at most a hundred; empty where the file is sound.

    Raises:
        sqlite3.OperationalError: the file is locked for too long or cannot be read.

    Hooks: none.
    """
    try:
        found = [" ".join(str(line).split()) for (line,) in INTEGRITY_CHECK.many(con)]
    except sqlite3.DatabaseError as error:
        # The schema itself may be too damaged for SQLite to begin.
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY != sqlite3.SQLITE_CORRUPT:
            raise
        return [str(error)]
    return [] if found == _SOUND else found
