"""Tell what passes, a lock or a full disk, from the errors of SQLite that stay."""

import sqlite3

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY = 0xFF


def is_locked(error: BaseException) -> bool:
    """Return whether another connection was in the way, so that trying again may help."""
    return _is_one_of(_LOCKED, error)


def is_full(error: BaseException) -> bool:
    """Return whether the disk had no room left, so that trying again may help in a while."""
    return _is_one_of((sqlite3.SQLITE_FULL,), error)


def _is_one_of(codes: tuple[int, ...], error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, sqlite3.OperationalError) and code & _PRIMARY in codes
