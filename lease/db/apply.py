"""Run yoyo's migrations on a borrowed connection, inside a transaction that is already open.

Stock yoyo opens a second connection, commits each migration on its own, keeps a lock row that
outlives a killed process and records user and host names. Here the caller's transaction is the
lock and the only commit; the bookkeeping stays as the `yoyo` command expects it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cache
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from yoyo import internalmigrations, read_migrations
from yoyo.backends.core.sqlite3 import SQLiteBackend
from yoyo.connections import parse_uri
from yoyo.migrations import default_migration_table

from lease.db.resources import OnDisk, folder
from lease.errors import UnusableFile


class BorrowedConnection(SQLiteBackend):  # type: ignore[misc]  # yoyo ships no types
    """yoyo's SQLite backend, without a connection, a commit or a lock of its own."""

    _in_transaction = True
    _internal_schema_updated = True

    def __init__(self, con: sqlite3.Connection) -> None:
        self._borrowed = con
        super().__init__(parse_uri("sqlite:///"), default_migration_table)

    def connect(self, _dburi: object) -> sqlite3.Connection:
        """Return the caller's connection."""
        return self._borrowed

    def copy(self) -> AbstractContextManager["BorrowedConnection"]:
        """Return this very backend, and leave it open."""
        return nullcontext(self)

    def commit(self) -> None:
        """Leave the commit to the caller."""

    def rollback(self) -> None:
        """Leave the rollback to the caller."""

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> sqlite3.Cursor:
        """Run a statement with times as text, so that no global adapter is needed."""
        texts = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in (params or {}).items()
        }
        cursor: sqlite3.Cursor = super().execute(sql, texts)
        return cursor

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:
        """Describe an operation without naming the user or the host."""
        return {
            "id": str(uuid4()),
            "migration_id": migration.id,
            "migration_hash": migration.hash,
            "operation": operation,
            "username": None,
            "hostname": None,
            "created_at_utc": datetime.now(UTC).replace(tzinfo=None),
        }


def apply(con: sqlite3.Connection, names: list[str]) -> None:
    """Apply the named migrations, in order, inside the caller's open transaction.

    Raises:
        UnusableFile: they could not be read.
    """
    with _plain_rows(con):
        backend = BorrowedConnection(con)
        migrations = _shipped(tuple(names))
        # The bookkeeping comes last: a new file's pages are given out in order, and what a verb
        # writes costs least beside the first page, which each commit writes as well.
        for migration in migrations:
            migration.process_steps(backend, "apply")
        internalmigrations.upgrade(backend)
        for migration in migrations:
            backend.log_migration(migration, "apply")
            backend.mark_one(migration, log=False)


# To split the SQL into its statements takes yoyo five times as long as to run them.
@cache
def _shipped(names: tuple[str, ...]) -> list[Any]:
    """Return the named migrations in yoyo's form, with nothing left to be read."""
    with _on_disk(names) as place:
        try:
            # yoyo takes a folder for a glob pattern.
            found = {each.id: each for each in read_migrations(escape(place))}
            for name in names:
                found[name].load()
        except OSError as error:
            raise UnusableFile(
                f"the migrations in {place} cannot be read: {error.strerror}; "
                "install lease-queue again"
            ) from error
    return [found[name] for name in names]


@contextmanager
def _plain_rows(con: sqlite3.Connection) -> Iterator[None]:
    """Let yoyo read rows as the driver makes them, whatever the owner wants them to be."""
    theirs = con.row_factory, con.text_factory
    con.row_factory, con.text_factory = None, str
    try:
        yield
    finally:
        con.row_factory, con.text_factory = theirs


@contextmanager
def _on_disk(names: tuple[str, ...]) -> Iterator[str]:
    """Lend a folder with the named migrations, of which yoyo reads only real files."""
    place = folder("migrations", "sqlite")
    if isinstance(place, OnDisk):
        yield place.path
        return
    with ExitStack() as stack:
        try:
            unpacked = stack.enter_context(TemporaryDirectory(prefix="lease-"))
            for file in place.iterdir():
                if file.name.partition(".")[0] in names:
                    Path(unpacked, file.name).write_bytes(file.read_bytes())
        except OSError as error:
            raise UnusableFile(
                f"its migrations cannot be unpacked into the temporary folder: {error.strerror}; "
                "make room there, or set TMPDIR"
            ) from error
        yield unpacked
