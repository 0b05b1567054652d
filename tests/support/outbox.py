"""An outbox as the tests of its verbs see it: rows read back, effects, clocks."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lease.outbox import Record
from tests.support.queue import content

#: 2026-01-02 03:04:05.678 UTC, in milliseconds and as the outbox writes it.
NOW_MS = 1_767_323_045_678
NOW = "2026-01-02T03:04:05.678+00:00"

COLUMNS = (
    "seq, id, event_type, payload_json, state, dispatch_count, created_at, processed_at, "
    "dispatched_at"
)


def clock() -> int:
    """Return the moment at which the tests act."""
    return NOW_MS


def rows(con: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return every record's whole row, in the order of recording."""
    names = COLUMNS.split(", ")
    found = con.execute(f"SELECT {COLUMNS} FROM outbox ORDER BY seq").fetchall()
    return [dict(zip(names, row, strict=True)) for row in found]


def deliveries(con: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return every delivery, by id."""
    return con.execute(
        "SELECT outbox_id, body_json, delivered_at FROM deliveries ORDER BY outbox_id"
    ).fetchall()


def committed(path: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str, str]]]:
    """Return the records and deliveries that a second connection sees."""
    with closing(sqlite3.connect(path, timeout=0)) as other:
        return rows(other), deliveries(other)


@contextmanager
def unchanged(con: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Demand that the block writes nothing, to the file or its log, and leaves no transaction."""
    files = path, path.with_name(path.name + "-wal")
    before = [content(file) for file in files]
    yield
    assert not con.in_transaction
    assert before == [content(file) for file in files]


def no_effect(_con: sqlite3.Connection, _record: Record) -> None:
    """Do nothing."""


class Effects(list[Record]):
    """An effect that keeps what it was called with; rows of its own go to the table `effects`."""

    def __call__(self, con: sqlite3.Connection, record: Record) -> None:
        """Write a row, and remember the record."""
        con.execute("CREATE TABLE IF NOT EXISTS effects (id TEXT, body TEXT)")
        con.execute("INSERT INTO effects VALUES (:id, :payload_json)", record)
        self.append(record)


class Killed(BaseException):
    """Stands for the death of the process: no `except Exception` catches it."""
