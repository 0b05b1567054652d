"""The named SQL statements, read once at import and frozen.

A file holds one statement. Its leading comment lines are the header: the first names the
statement as the file does, the others tell a DBA its parameters, result, caller and plan.
"""

import sqlite3
from typing import Any, NamedTuple

from lease.db.resources import Place, folder

Value = str | int | float | bytes | None
Row = tuple[Any, ...]


class Statement(NamedTuple):
    """One named statement; each method is one `Result` that a header may declare."""

    name: str
    sql: str

    def none(self, con: sqlite3.Connection, **parameters: Value) -> None:
        """Run it for its effect alone."""
        self._cursor(con, parameters)

    def count(self, con: sqlite3.Connection, **parameters: Value) -> int:
        """Run it and return how many rows it changed."""
        return self._cursor(con, parameters).rowcount

    def one(self, con: sqlite3.Connection, **parameters: Value) -> Row:
        """Run it and return its only row."""
        (row,) = self._rows(con, parameters)
        return row

    def optional(self, con: sqlite3.Connection, **parameters: Value) -> Row | None:
        """Run it and return its only row, or None."""
        rows = self._rows(con, parameters)
        return rows[0] if rows else None

    def many(self, con: sqlite3.Connection, **parameters: Value) -> list[Row]:
        """Run it and return all rows."""
        return self._rows(con, parameters)

    def _rows(self, con: sqlite3.Connection, parameters: dict[str, Value]) -> list[Row]:
        """Fetch to the end: a RETURNING that is half read would make COMMIT fail."""
        cursor = self._cursor(con, parameters)
        rows: list[Row] = []
        if con.text_factory is str:
            try:
                # Unlike fetchall, it keeps the rows before one that cannot be fetched.
                rows += cursor
            except sqlite3.OperationalError as error:
                if not is_about_text(error):
                    raise
            else:
                return rows
        return rows + fetched_as_text(con, cursor)

    def _cursor(self, con: sqlite3.Connection, parameters: dict[str, Value]) -> sqlite3.Cursor:
        try:
            cursor = con.execute(self.sql, parameters)
        except UnicodeDecodeError as error:
            # A damaged schema is quoted in SQLite's message, which is then no text.
            raise sqlite3.DatabaseError("the file is damaged: its schema is no UTF-8") from error
        # The connection is borrowed; its owner may have chosen another row shape.
        cursor.row_factory = None
        return cursor


def is_about_text(error: sqlite3.OperationalError) -> bool:
    """Tell whether a row was not fetched for a text in it that is no UTF-8."""
    # The driver's own error, and its only one while it fetches: those of SQLite have a code.
    return not hasattr(error, "sqlite_errorcode")


def fetched_as_text(con: sqlite3.Connection, cursor: sqlite3.Cursor) -> list[Row]:
    """Fetch what is left of a cursor as str, whatever stands there and whatever its owner wants.

    Somebody's own SQL may have put a text there that is no UTF-8. Its other bytes are shown with
    a backslash, so that no verb takes it for an identifier. The driver stays on a row that it
    could not fetch: nothing is lost, and a RETURNING, which has changed its rows by then, is not
    run again.
    """
    theirs = con.text_factory
    con.text_factory = _decoded
    try:
        return cursor.fetchall()
    finally:
        con.text_factory = theirs


def _decoded(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


def parse(file_name: str, text: str) -> Statement:
    """Split a file into its header and its statement.

    Raises:
        ValueError: the header's first line does not name the statement as the file does.
    """
    lines = text.splitlines(keepends=True)
    size = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
    name = text.removeprefix("--").partition(":")[0].strip()
    if file_name != f"{name}.sql":
        raise ValueError(f"{file_name} names its statement {name!r}; the two must be alike")
    return Statement(name, "".join(lines[size:]).strip())


def read(place: Place) -> dict[str, Statement]:
    """Read every `.sql` file of a folder, once.

    Raises:
        ValueError: a file names its statement otherwise, so that a name would stand twice.
    """
    files = [file for file in place.iterdir() if file.name.endswith(".sql")]
    found = [parse(file.name, file.read_bytes().decode()) for file in files]
    return {each.name: each for each in found}


_STATEMENTS = read(folder("sql", "sqlite"))


def statement(name: str) -> Statement:
    """Return the statement of that name; called at import, so that a missing file fails there.

    Raises:
        LookupError: no file of that name was shipped.
    """
    if name not in _STATEMENTS:
        raise LookupError(f"sql/sqlite/{name}.sql is missing; install lease-queue again")
    return _STATEMENTS[name]
