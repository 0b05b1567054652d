"""The write transaction: what it holds, how it ends, and which error comes out."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lease.db.statements import _STATEMENTS
from lease.db.transaction import write_transaction


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt and its like."""


class Failing(sqlite3.Connection):
    """A connection on which chosen statements fail, after or instead of having run."""

    instead: dict[str, BaseException] = {}  # noqa: RUF012  (each test sets its own)
    after: dict[str, BaseException] = {}  # noqa: RUF012

    def execute(self, sql: str, *parameters) -> sqlite3.Cursor:
        if sql in self.instead:
            raise self.instead[sql]
        cursor = super().execute(sql, *parameters)
        if sql in self.after:
            raise self.after[sql]
        return cursor


def connect(path: Path) -> Failing:
    """Open a file without waiting for locks."""
    return sqlite3.connect(path, isolation_level=None, timeout=0, factory=Failing)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one empty table."""
    place = tmp_path / "file.db"
    with closing(connect(place)) as made:
        made.execute("CREATE TABLE rows (n INTEGER UNIQUE)")
    return place


@pytest.fixture
def con(path: Path) -> Iterator[Failing]:
    """A connection to the file."""
    with closing(connect(path)) as made:
        yield made


@pytest.fixture
def other(path: Path) -> Iterator[Failing]:
    """Another connection to the file."""
    with closing(connect(path)) as made:
        yield made


def rows(con: sqlite3.Connection) -> list[int]:
    """Read the table."""
    return [n for (n,) in con.execute("SELECT n FROM rows ORDER BY n")]


def test_commits_at_end(con, other):
    """What the block wrote is there for others as soon as it has ended."""
    with write_transaction(con):
        con.execute("INSERT INTO rows VALUES (1)")
        assert rows(other) == []

    assert rows(other) == [1]
    assert not con.in_transaction


def test_holds_write_lock_from_start(con, other):
    """Nobody else can begin to write, even before the block has written."""
    with write_transaction(con), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize("sql", ["SELECT n FROM rows", "UPDATE rows SET n = 2 WHERE n = 9"])
def test_asks_nothing_of_a_reader_where_no_row_changed(con, other, sql: str):
    """A block that only looked ends although somebody else still reads."""
    con.execute("INSERT INTO rows VALUES (1)")
    other.execute("BEGIN")
    other.execute("SELECT n FROM rows").fetchall()

    with write_transaction(con):
        con.execute(sql).fetchall()

    assert not con.in_transaction
    other.execute("COMMIT")
    other.execute("BEGIN IMMEDIATE")


def test_commits_what_a_trigger_alone_wrote(con, other):
    """A view holds no rows; those that its trigger writes are rows like any other."""
    con.execute("CREATE VIEW door AS SELECT n FROM rows")
    con.execute(
        "CREATE TRIGGER in_by_it INSTEAD OF INSERT ON door"
        " BEGIN INSERT INTO rows VALUES (new.n); END"
    )

    with write_transaction(con):
        con.execute("INSERT INTO door VALUES (1)")

    assert rows(other) == [1]


def test_commits_a_row_that_came_and_went(con, other):
    """Changes are counted, not compared: what else the block did with them is committed."""
    with write_transaction(con):
        con.execute("PRAGMA user_version = 7")
        con.execute("INSERT INTO rows VALUES (1)")
        con.execute("DELETE FROM rows")

    assert other.execute("PRAGMA user_version").fetchone() == (7,)


@pytest.mark.parametrize("name", _STATEMENTS)
def test_no_statement_changes_the_schema_alone(name: str):
    """A change that counts no row would be rolled back; the schema is left to migrations."""
    verb = _STATEMENTS[name].sql.split(maxsplit=1)[0]

    assert verb in {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "PRAGMA"}


@pytest.mark.parametrize("error", [RuntimeError("fault"), Interrupted(), GeneratorExit()])
def test_rolls_back_on_any_error(con, other, error: BaseException):
    """The block's own error comes out, the same object, and nothing of the block stays."""

    def fail() -> None:
        with write_transaction(con):
            con.execute("INSERT INTO rows VALUES (1)")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()

    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert (rows(other), con.in_transaction) == ([], False)


def test_accepts_transaction_that_sqlite_ended(con, other):
    """Some errors make SQLite roll back by itself; the error comes out without a note."""
    con.execute("INSERT INTO rows VALUES (1)")

    with pytest.raises(sqlite3.IntegrityError) as caught, write_transaction(con):
        con.execute("INSERT OR ROLLBACK INTO rows VALUES (2), (1)")

    assert not hasattr(caught.value, "__notes__")
    assert (rows(other), con.in_transaction) == ([1], False)


def test_refuses_open_transaction(con, other):
    """A transaction that the caller left open is refused and left as it is."""
    con.execute("BEGIN")
    con.execute("INSERT INTO rows VALUES (1)")

    with (
        pytest.raises(sqlite3.ProgrammingError, match="already has an open transaction; commit"),
        write_transaction(con),
    ):
        pytest.fail("the block ran")

    assert con.in_transaction
    con.execute("COMMIT")
    assert rows(other) == [1]


def test_reports_lock_of_another(con, other):
    """Where another connection writes, the block does not run and nothing is left open."""
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(sqlite3.OperationalError, match="locked"), write_transaction(con):
        pytest.fail("the block ran")

    assert not con.in_transaction


def test_ends_transaction_whose_begin_was_interrupted(con, other):
    """An interrupt that arrives once the lock is held releases it again."""
    stop = Interrupted()
    con.after = {"BEGIN IMMEDIATE": stop}

    with pytest.raises(Interrupted) as caught, write_transaction(con):
        pytest.fail("the block ran")

    assert caught.value is stop
    assert not con.in_transaction
    other.execute("BEGIN IMMEDIATE")


def test_rolls_back_commit_that_reader_blocks(con, other):
    """A COMMIT that fails because somebody reads is rolled back, and its error comes out."""
    con.execute("INSERT INTO rows VALUES (1)")
    other.execute("BEGIN")
    other.execute("SELECT n FROM rows").fetchall()

    with (
        pytest.raises(sqlite3.OperationalError, match="locked") as caught,
        write_transaction(con),
    ):
        con.execute("INSERT INTO rows VALUES (2)")

    assert caught.value.sqlite_errorname == "SQLITE_BUSY"
    assert not con.in_transaction
    other.execute("ROLLBACK")
    assert rows(other) == [1]


def test_rolls_back_commit_that_constraint_refuses(con):
    """A deferred constraint that COMMIT finds broken undoes the block."""
    con.execute("PRAGMA foreign_keys = ON")
    con.execute("CREATE TABLE notes (n INTEGER REFERENCES rows (n) DEFERRABLE INITIALLY DEFERRED)")

    with pytest.raises(sqlite3.IntegrityError), write_transaction(con):
        con.execute("INSERT INTO notes VALUES (9)")

    assert not con.in_transaction
    assert con.execute("SELECT n FROM notes").fetchall() == []


def test_keeps_commit_that_was_interrupted_afterwards(con, other):
    """An interrupt right after COMMIT comes out; what was committed stays."""
    con.after = {"COMMIT": Interrupted()}

    with pytest.raises(Interrupted), write_transaction(con):
        con.execute("INSERT INTO rows VALUES (1)")

    assert (rows(other), con.in_transaction) == ([1], False)


def test_first_error_survives_failed_rollback(con):
    """A ROLLBACK that fails is told in a note; the first error is the one that comes out."""
    first = RuntimeError("fault")
    con.instead = {"ROLLBACK": sqlite3.OperationalError("disk I/O error")}

    with pytest.raises(RuntimeError) as caught, write_transaction(con):
        raise first

    assert caught.value is first
    assert first.__notes__ == ["ROLLBACK failed as well: disk I/O error"]
    assert con.in_transaction


def test_failed_end_of_an_unchanged_block_comes_out(con):
    """Where nothing changed, ROLLBACK is the end; that it failed is said, and tried once more."""
    con.instead = {"ROLLBACK": sqlite3.OperationalError("disk I/O error")}

    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"), write_transaction(con):
        pass

    con.instead = {}
    con.execute("ROLLBACK")


def test_commit_error_survives_failed_rollback(con):
    """The same holds where COMMIT failed."""
    con.instead = {
        "COMMIT": sqlite3.OperationalError("disk full"),
        "ROLLBACK": sqlite3.OperationalError("disk I/O error"),
    }

    with (
        pytest.raises(sqlite3.OperationalError) as caught,
        write_transaction(con),
    ):
        con.execute("INSERT INTO rows VALUES (1)")

    assert str(caught.value) == "disk full"
    assert caught.value.__notes__ == ["ROLLBACK failed as well: disk I/O error"]
