"""integrity_check: damage is listed, and nothing else is taken for damage."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease import jobs
from lease.db.statements import Statement
from lease.jobs import _integrity
from tests.support.queue import put_pending, unchanged, without_waiting, writing


def damage(path: Path) -> None:
    """Overwrite the last page of a file that nobody has open."""
    with path.open("r+b") as file:
        file.seek(-4096, 2)
        file.write(b"\xa5" * 4096)


def test_integrity_check_of_a_sound_file_is_empty(con: sqlite3.Connection, queue_path: Path):
    """Nothing is written by looking."""
    put_pending(con)

    with unchanged(con, queue_path):
        assert jobs.integrity_check(con) == []


def test_integrity_check_lists_damage_in_single_lines(con: sqlite3.Connection, queue_path: Path):
    """What SQLite says in several lines is one."""
    con.close()
    damage(queue_path)

    with closing(sqlite3.connect(queue_path)) as other:
        faults = jobs.integrity_check(other)

    assert faults
    assert all(fault.isprintable() for fault in faults)


def test_integrity_check_reports_a_file_that_cannot_be_begun(
    con: sqlite3.Connection, queue_path: Path
):
    """Damage for which SQLite raises is damage all the same."""
    con.execute("PRAGMA writable_schema = ON")
    con.execute("UPDATE sqlite_schema SET sql = 'nonsense' WHERE name = 'redrives'")
    con.execute("PRAGMA writable_schema = OFF")

    with closing(sqlite3.connect(queue_path)) as other:
        (fault,) = jobs.integrity_check(other)

    assert "malformed database schema (redrives)" in fault


def test_integrity_check_lets_a_lock_out(con: sqlite3.Connection, queue_path: Path):
    """A file that is only busy is not called damaged."""
    without_waiting(con)
    with writing(queue_path) as writer:
        writer.execute("DELETE FROM jobs")
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("COMMIT")
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            jobs.integrity_check(con)


def test_integrity_check_lets_other_errors_out(
    con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
):
    """An error that says nothing about damage is no finding."""
    monkeypatch.setattr(_integrity, "INTEGRITY_CHECK", Statement("integrity_check", "nonsense;"))

    with pytest.raises(sqlite3.OperationalError, match="syntax"):
        jobs.integrity_check(con)
