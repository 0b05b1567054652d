"""Tell a lock, which passes, from the errors of SQLite that stay."""

import sqlite3

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY = 0xFF


def is_locked(error: BaseException) -> bool:
    """Return whether another connection was in the way, so that trying again may help."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, sqlite3.OperationalError) and code & _PRIMARY in _LOCKED
