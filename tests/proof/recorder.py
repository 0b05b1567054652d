"""SQLite by way of APSW, with every call on its files recorded, for the verbs to run on."""

# ruff: noqa: N802  (APSW names the methods)

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from tests.proof.disk import Event

# SQLite's Unix layer marks these, when it opens them to write, to sync their folder as well.
_LOGS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


class _File(apsw.VFSFile):
    def __init__(self, log: list[Event], name: str, base: str, path: Any, flags: Any) -> None:
        super().__init__(base, path, flags)
        self._log = log
        self._name = name

    def xWrite(self, data: bytes, offset: int) -> None:
        self._log.append(Event("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._log.append(Event("truncate", self._name, size))
        super().xTruncate(size)

    def xSync(self, _flags: int) -> None:
        # Recorded only: the power of this machine stays on.
        self._log.append(Event("sync", self._name))


class _Files(apsw.VFS):
    def __init__(self, log: list[Event]) -> None:
        self._log = log
        self._base = "unix"
        super().__init__(f"recorder-{id(self)}", self._base)

    @property
    def name(self) -> str:
        return f"recorder-{id(self)}"

    def xOpen(self, path: Any, flags: list[int]) -> apsw.VFSFile:
        file = path.filename() if isinstance(path, apsw.URIFilename) else path
        name = os.path.basename(file)
        log = bool(flags[0] & _LOGS and flags[0] & apsw.SQLITE_OPEN_CREATE)
        self._log.append(Event("open", name, syncs_folder=log))
        return _File(self._log, name, self._base, path, flags)

    def xDelete(self, path: str, syncs_folder: bool) -> None:
        super().xDelete(path, syncs_folder)
        self._log.append(Event("delete", os.path.basename(path), syncs_folder=bool(syncs_folder)))


class _Cursor:
    """What a statement asks of a cursor, on APSW's."""

    def __init__(self, con: apsw.Connection) -> None:
        self._con = con
        self._cursor = con.cursor()
        self.row_factory = None

    def execute(self, sql: str, parameters: Any = ()) -> "_Cursor":
        self._cursor.execute(sql, parameters)
        return self

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._cursor

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._cursor.fetchall()

    @property
    def rowcount(self) -> int:
        return self._con.changes()


class _Connection:
    """What the verbs ask of a connection, on APSW's."""

    text_factory = str

    def __init__(self, con: apsw.Connection) -> None:
        self._con = con

    @property
    def in_transaction(self) -> bool:
        return self._con.in_transaction

    @property
    def total_changes(self) -> int:
        return self._con.total_changes()

    def cursor(self) -> _Cursor:
        return _Cursor(self._con)

    def execute(self, sql: str, parameters: Any = ()) -> _Cursor:
        return self.cursor().execute(sql, parameters)


@contextmanager
def recording(file: Path) -> Iterator[tuple[Any, list[Event]]]:
    """Open a file for the verbs; yield the connection and the growing list of its calls."""
    log: list[Event] = []
    files = _Files(log)
    try:
        with closing(apsw.Connection(str(file), vfs=files.name)) as con:
            yield _Connection(con), log
    finally:
        files.unregister()
