"""is_locked and is_full: what passes, and what stays as it is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease.db.locked import is_full, is_locked
from tests.support.queue import reading, without_waiting, writing


def test_is_locked_tells_a_write_lock(con: sqlite3.Connection, queue_path: Path) -> None:
    """BEGIN IMMEDIATE beside another writer is worth another try."""
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError) as caught:
        con.execute("BEGIN IMMEDIATE")

    assert is_locked(caught.value)


def test_is_locked_tells_a_commit_that_a_reader_stops(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """COMMIT beside a reader is worth another try."""
    without_waiting(con)
    con.execute("BEGIN IMMEDIATE")
    con.execute("DELETE FROM redrives")
    con.execute("INSERT INTO redrives (id, token, at_ms, note) VALUES ('a', 1, 1, 'n')")

    with reading(queue_path), pytest.raises(sqlite3.OperationalError) as caught:
        con.execute("COMMIT")

    assert is_locked(caught.value)


def test_is_locked_knows_the_extended_codes() -> None:
    """The code's lower byte tells the kind, the rest why."""
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY_SNAPSHOT

    assert is_locked(error)


def test_is_locked_leaves_other_errors_alone() -> None:
    """A wrong statement, an error made by hand and one of another kind do not pass."""
    with closing(sqlite3.connect(":memory:")) as con, pytest.raises(sqlite3.Error) as caught:
        con.execute("SELEKT")
    foreign = ValueError("database is locked")
    foreign.sqlite_errorcode = sqlite3.SQLITE_BUSY  # type: ignore[attr-defined]  # a stranger's

    assert not is_locked(caught.value)
    assert not is_full(caught.value)
    assert not is_locked(sqlite3.OperationalError("database is locked"))
    assert not is_locked(foreign)


def test_is_full_tells_a_disk_without_room(con: sqlite3.Connection) -> None:
    """A file that may not grow is worth another try once there is room; it is not locked."""
    con.execute("PRAGMA max_page_count = 1")

    with pytest.raises(sqlite3.OperationalError) as caught:
        con.execute("CREATE TABLE large AS SELECT zeroblob(1000000) AS bytes")

    assert is_full(caught.value)
    assert not is_locked(caught.value)
