"""Put a file's durability in force, and believe only what SQLite reads back."""

import sqlite3
import warnings
from functools import cache
from typing import Literal, cast

from lease.db.statements import statement
from lease.errors import UnusableFile, WalResetWarning

DURABILITY_DELETE = statement("durability_delete")
DURABILITY_WAL = statement("durability_wal")
DURABILITY_FULL = statement("durability_full")
DURABILITY_MODE = statement("durability_mode")
DURABILITY_LEVEL = statement("durability_level")

JournalMode = Literal["delete", "wal"]

_JOURNAL = {"delete": DURABILITY_DELETE, "wal": DURABILITY_WAL}
_FULL = 2

# Series of SQLite in which the fault was mended, and by which release; later series never had it.
_MENDED = {(3, 44): 6, (3, 50): 7, (3, 51): 3}


def make_durable(con: sqlite3.Connection, journal_mode: JournalMode | None) -> JournalMode:
    """Set a journal mode and `synchronous=FULL`, so that power loss tears no commit.

    With `wal` it undoes none either. With `delete` it may undo the newest, until the next one:
    SQLite syncs the folder after the delete that commits only at `synchronous=EXTRA`.

    Args:
        con: a connection with no transaction open.
        journal_mode: `delete` costs four syncs a commit; `wal` costs one, and adds two files.
            None keeps the one that the file has.

    Returns:
        The journal mode that is now in force.

    Raises:
        UnusableFile: SQLite kept other settings, as it does for a file that is no ordinary one,
            or others have the file open in the other mode.
        sqlite3.OperationalError: another connection is in the way.

    Warns:
        WalResetWarning: there is a write-ahead log, and this SQLite has a fault that may damage
            such a file; once a process, at the caller of whoever calls this.
    """
    mode = mode_in_force(con) if journal_mode is None else _switched(con, journal_mode)
    DURABILITY_FULL.none(con)
    (level,) = DURABILITY_LEVEL.one(con)
    if mode not in _JOURNAL or mode != (journal_mode or mode) or level != _FULL:
        raise UnusableFile(
            f"the file keeps journal_mode={mode} and synchronous={level} in place of "
            f"{journal_mode or 'delete or wal'} and {_FULL}; close its other users or choose "
            "another file"
        )
    if mode == "wal":
        _warn_of_wal_reset()
    return mode


def mode_in_force(con: sqlite3.Connection) -> JournalMode:
    """Return the journal mode of a file, which a stranger may have set to yet another one."""
    (mode,) = DURABILITY_MODE.one(con)
    return cast(JournalMode, mode)


def has_wal_reset_fault(version: tuple[int, int, int] = sqlite3.sqlite_version_info) -> bool:
    """Tell whether a release of SQLite may damage a file that has a write-ahead log.

    In releases from 3.7.0 to 3.51.2, apart from the mended 3.44.6 and 3.50.7 and those after
    them in their series, a commit and a checkpoint by two connections at the same instant may
    leave committed pages behind.
    """
    series, release = version[:2], version[2]
    if series in _MENDED:
        return release < _MENDED[series]
    return (3, 7) <= series < max(_MENDED)


@cache
def _warn_of_wal_reset() -> None:
    if has_wal_reset_fault():
        warnings.warn(
            f"SQLite {sqlite3.sqlite_version} may damage a file that has a write-ahead log, when "
            "one connection commits at the very instant another makes a checkpoint; use SQLite "
            "3.51.3 or later (3.50.7 and 3.44.6 are mended too), or journal_mode='delete'",
            WalResetWarning,
            stacklevel=4,
        )


def _switched(con: sqlite3.Connection, journal_mode: JournalMode) -> JournalMode:
    try:
        (mode,) = _JOURNAL[journal_mode].one(con)
    except sqlite3.OperationalError as error:
        # Only the primary part of the code, which tells no two ways of being busy apart.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        mode = mode_in_force(con)
        if mode != journal_mode:
            raise UnusableFile(
                f"others have the file open with journal_mode={mode}, which keeps it from "
                f"{journal_mode}; close them first, or open it with theirs"
            ) from error
    return cast(JournalMode, mode)
