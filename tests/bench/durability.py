"""The journal mode and the synchronous level of a peer: read back, and where asked for, put.

Peers set their own, most of them out of reach of an option. Those that use Python's `sqlite3` get
their connections from here, so that a comparison at equal durability needs no copy of their code.
"""

import re
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

_OWN_CHOICE = re.compile(r"\s*PRAGMA\s+(journal_mode|synchronous)\s*=", re.IGNORECASE)
_LEVELS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


class Setting(NamedTuple):
    """What a file's commits survive, and what they cost."""

    journal_mode: str
    synchronous: str

    def __str__(self) -> str:
        """Show it as a table does."""
        return f"{self.journal_mode} + {self.synchronous}"


DELETE_FULL = Setting("DELETE", "FULL")
WAL_FULL = Setting("WAL", "FULL")
#: Survives no power loss; shows what a queue computes, with the disk out of the way.
DELETE_OFF = Setting("DELETE", "OFF")

_asked: dict[str, Setting | None] = {}
_found: dict[str, Setting] = {}
_open: WeakSet["_Watched"] = WeakSet()
_connect = sqlite3.connect


class _Watched(sqlite3.Connection):
    """A peer's connection, which notes its setting when it is closed."""

    folder = ""

    def close(self) -> None:
        """Close it, noting its setting: some peers have a connection for each transaction."""
        if self.folder not in _found and self.total_changes:
            _found[self.folder] = setting_of(self)
        _open.discard(self)
        super().close()


class _Opening(_Watched):
    """One whose owner may still make its own choice of a setting."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Run a statement, but not one that would undo the setting that was asked for."""
        if _asked[self.folder] and _OWN_CHOICE.match(sql):
            return super().execute("PRAGMA user_version")
        return super().execute(sql, *parameters)


def watch(folder: Path, setting: Setting | None) -> None:
    """See to the connections to files in a folder from now on.

    Args:
        folder: the peer's own.
        setting: what they get in place of the peer's choice; None leaves that.
    """
    _asked[str(folder)] = setting
    _found.pop(str(folder), None)
    sqlite3.connect = _watched  # type: ignore[assignment]  # one signature of several


def no_longer_watch(folder: Path) -> None:
    """Look at no further statement of a folder's connections: to look at each costs time."""
    for con in _open:
        if con.folder == str(folder):
            con.__class__ = _Watched


def read_back(folder: Path) -> Setting:
    """Return the setting of a folder's busiest writer, or of one that has been closed."""
    writers = [con for con in _open if con.folder == str(folder) and con.total_changes]
    if writers:
        return setting_of(max(writers, key=lambda con: con.total_changes))
    return _found[str(folder)]


def setting_of(con: sqlite3.Connection) -> Setting:
    """Ask SQLite what a connection runs with."""
    (mode,) = con.execute("PRAGMA journal_mode").fetchone()
    (level,) = con.execute("PRAGMA synchronous").fetchone()
    return Setting(mode.upper(), _LEVELS[level])


def _watched(database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
    folder = next((each for each in _asked if str(database).startswith(f"{each}/")), None)
    if folder is None:
        return _connect(database, *arguments, **options)
    con = _connect(database, *arguments, factory=_Opening, **options)
    con.folder = folder
    _open.add(con)
    if setting := _asked[folder]:
        sqlite3.Connection.execute(con, f"PRAGMA journal_mode = {setting.journal_mode}").fetchone()
        sqlite3.Connection.execute(con, f"PRAGMA synchronous = {setting.synchronous}")
    return con
