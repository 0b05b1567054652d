"""A file's durability is put in force, and only what SQLite reads back is believed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease.db import durability
from lease.db.connection import connect
from lease.db.durability import make_durable
from lease.db.statements import Statement
from lease.errors import UnusableFile


def settings(con: sqlite3.Connection) -> tuple[str, int]:
    """Read what is in force."""
    (mode,) = con.execute("PRAGMA journal_mode").fetchone()
    (level,) = con.execute("PRAGMA synchronous").fetchone()
    return mode, level


@pytest.fixture
def con(tmp_path: Path):
    """A connection to a file with a table, in the other durability than FULL."""
    with closing(connect(tmp_path / "file.db", timeout_s=0)) as made:
        made.execute("PRAGMA synchronous = OFF")
        made.execute("CREATE TABLE made (n)")
        yield made


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("before", ["delete", "wal", "truncate"])
def test_sets_mode_and_level(con: sqlite3.Connection, before: str, mode):
    """Whatever was in force before, the mode asked for and FULL are in force afterwards."""
    con.execute(f"PRAGMA journal_mode = {before}")
    make_durable(con, mode)

    assert settings(con) == (mode, 2)


def test_changes_nothing_in_current_file(con: sqlite3.Connection, tmp_path: Path):
    """A file in the mode asked for is not written, and needs no lock to be set."""
    make_durable(con, "delete")
    before = (tmp_path / "file.db").stat()
    with closing(connect(tmp_path / "file.db", timeout_s=0)) as other:
        con.execute("BEGIN IMMEDIATE")
        make_durable(other, "delete")

        assert settings(other) == ("delete", 2)
        con.execute("ROLLBACK")
    after = (tmp_path / "file.db").stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_refuses_database_without_file(mode):
    """A database in memory keeps its own mode; the message says what it kept and what to do."""
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as memory,
        pytest.raises(UnusableFile) as caught,
    ):
        make_durable(memory, mode)

    assert str(caught.value) == (
        f"the file keeps journal_mode=memory and synchronous=2 in place of {mode} and 2; "
        "close its other users or choose another file"
    )


def test_refuses_level_that_was_kept(con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch):
    """A level other than FULL is refused, even though the mode is right."""
    weaker = Statement("durability_full", "PRAGMA synchronous = NORMAL;")
    monkeypatch.setattr(durability, "DURABILITY_FULL", weaker)

    with pytest.raises(UnusableFile, match="journal_mode=delete and synchronous=1 in place of"):
        make_durable(con, "delete")


def test_refuses_stronger_level_too(con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch):
    """EXTRA is not FULL; only what was asked for passes."""
    stronger = Statement("durability_full", "PRAGMA synchronous = EXTRA;")
    monkeypatch.setattr(durability, "DURABILITY_FULL", stronger)

    with pytest.raises(UnusableFile, match="synchronous=3 in place of delete and 2"):
        make_durable(con, "delete")


def test_reports_user_that_is_in_the_way(con: sqlite3.Connection, tmp_path: Path):
    """Leaving the write-ahead log takes the file alone; the message says who is in the way."""
    con.execute("PRAGMA journal_mode = WAL")
    with closing(connect(tmp_path / "file.db")) as other:
        assert other.execute("SELECT n FROM made").fetchall() == []

        with pytest.raises(UnusableFile, match="others have the file open with journal_mode=wal"):
            make_durable(con, "delete")
