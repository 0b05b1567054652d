"""Bringing a file's schema up to date: one transaction, no needless lock, no unknown future."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lease import UnusableFile, open_queue
from lease.db import migrations
from lease.db.apply import apply
from lease.db.connection import connect
from lease.db.migrations import has, migrate, missing
from lease.db.statements import Statement
from lease.db.transaction import write_transaction
from lease.jobs import _open
from lease.jobs._open import OPEN_PROBE
from tests.support.processes import output, run_code

OPEN_A_LITTLE = """
import resource, sqlite3, sys
from lease import open_queue
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20480, limits[1]))
try:
    open_queue(sys.argv[1])
except sqlite3.OperationalError as error:
    print(error.sqlite_errorname, error)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
"""


class Stopped(BaseException):
    """A fault that no code knows."""


def schema(path: Path) -> list[tuple]:
    """Read the whole catalogue of a file."""
    with closing(connect(path, create=False)) as con:
        return con.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


@contextmanager
def watched(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect every statement that the next `open_queue` of the path runs."""
    seen: list[str] = []

    def connect_watched(*arguments, **options) -> sqlite3.Connection:
        con = connect(*arguments, **options)
        con.set_trace_callback(seen.append)
        return con

    with monkeypatch.context() as patch:
        patch.setattr(_open, "connect", connect_watched)
        yield seen


def test_new_file_takes_one_transaction(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One BEGIN IMMEDIATE and one COMMIT hold the whole schema and its bookkeeping."""
    with watched(queue_path, monkeypatch) as seen:
        open_queue(queue_path).close()

    ends = [each for each in seen if each.startswith(("BEGIN", "COMMIT", "END", "ROLLBACK;"))]
    assert ends == ["BEGIN IMMEDIATE", "COMMIT"]
    writes = [at for at, each in enumerate(seen) if each.startswith(("CREATE", "INSERT", "DROP"))]
    assert seen.index("BEGIN IMMEDIATE") < min(writes)
    assert max(writes) < seen.index("COMMIT")


def test_current_file_is_only_read(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Opening a current file begins nothing, writes nothing and leaves no trace in it."""
    open_queue(queue_path).close()
    before = queue_path.read_bytes(), queue_path.stat().st_mtime_ns
    with watched(queue_path, monkeypatch) as seen:
        open_queue(queue_path).close()

    assert {each.split()[0] for each in seen if each[0] != "-"} == {"PRAGMA", "SELECT"}
    assert (queue_path.read_bytes(), queue_path.stat().st_mtime_ns) == before


def test_current_file_opens_while_another_writes(queue_path: Path):
    """No write lock is needed for a current file, nor waited for."""
    with closing(open_queue(queue_path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with closing(open_queue(queue_path)) as reader:
            assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
        writer.execute("ROLLBACK")


def test_current_file_does_without_yoyo(queue_path: Path):
    """A fresh process that opens a current file never imports the migration runner."""
    open_queue(queue_path).close()
    code = """
import sys, lease
lease.open_queue(sys.argv[1]).close()
print([name for name in ("yoyo", "sqlparse", "lease.db.apply") if name in sys.modules])
"""

    assert output(run_code(code, queue_path)) == "[]"


def test_migrate_tells_whether_there_was_work(queue_path: Path):
    """True the first time and False the second."""
    with closing(connect(queue_path)) as con:
        assert migrate(con, "queue", OPEN_PROBE) is True
        assert migrate(con, "queue", OPEN_PROBE) is False


def test_second_opener_finds_work_done(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A process that waited for the lock looks again, and applies nothing twice."""

    class Late(migrations.write_transaction):
        def __enter__(self) -> None:
            monkeypatch.undo()
            open_queue(queue_path).close()
            super().__enter__()

    monkeypatch.setattr(migrations, "write_transaction", Late)
    with closing(connect(queue_path)) as con:
        assert migrate(con, "queue", OPEN_PROBE) is False
        assert not con.in_transaction


def test_missing_lists_a_set_in_order(queue_path: Path):
    """A new file lacks all of the set, in the order of the numbers, and nothing of another."""
    with closing(connect(queue_path)) as con:
        lacking = missing(con, "queue")

    assert lacking[:2] == ["queue_0001_jobs_and_redrives", "queue_0002_open_jobs"]
    assert lacking == sorted(name for name in migrations._SHIPPED if name.startswith("queue_"))


def test_refuses_set_that_was_not_shipped(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without its migrations an installation would take an empty file for a current one."""
    monkeypatch.setattr(migrations, "_SHIPPED", ["outbox_0001_x"])

    with pytest.raises(FileNotFoundError) as caught:
        open_queue(queue_path)

    assert str(caught.value) == (
        "the installed lease package lacks the migrations queue_*; install lease-queue again"
    )


def test_applies_only_what_is_missing(queue_path: Path):
    """A file of an earlier version gets the later migrations and keeps its rows."""
    with closing(connect(queue_path)) as con:
        with write_transaction(con):
            apply(con, ["queue_0001_jobs_and_redrives"])
        con.execute("INSERT INTO redrives VALUES (7, 'a', 1, 2, 'note')")
        later = missing(con, "queue")
    open_queue(queue_path).close()

    assert later[0] == "queue_0002_open_jobs"
    with closing(connect(queue_path)) as con:
        assert missing(con, "queue") == []
        assert con.execute("SELECT seq FROM redrives").fetchall() == [(7,)]
        applied = con.execute("SELECT migration_id FROM _yoyo_migration").fetchall()
    assert sorted(applied) == [("queue_0001_jobs_and_redrives",), *((name,) for name in later)]


def test_refuses_file_from_the_future(queue_path: Path):
    """A migration that this version does not know is named, and the file is left alone."""
    open_queue(queue_path).close()
    with closing(connect(queue_path)) as con:
        con.execute("INSERT INTO _yoyo_migration VALUES ('f', 'queue_9999_later', NULL)")
        con.execute("INSERT INTO _yoyo_migration VALUES ('e', 'queue_9998_late', NULL)")
    before = queue_path.read_bytes()

    with pytest.raises(UnusableFile) as caught:
        open_queue(queue_path)

    assert str(caught.value) == (
        "the file has the migration queue_9998_late, which this version of lease does not know; "
        "upgrade lease-queue"
    )
    assert queue_path.read_bytes() == before


@pytest.mark.parametrize("name", ["app_0001_users", "queues_0001_all", "queueX0001", "0001"])
def test_leaves_migrations_of_others_alone(queue_path: Path, name: str):
    """The bookkeeping is shared; what bears no prefix of ours is the application's own."""
    open_queue(queue_path).close()
    with closing(connect(queue_path)) as con:
        con.execute("INSERT INTO _yoyo_migration VALUES ('f', ?, NULL)", (name,))
    open_queue(queue_path).close()

    with closing(connect(queue_path)) as con:
        assert (name,) in con.execute("SELECT migration_id FROM _yoyo_migration").fetchall()


@pytest.mark.parametrize(
    "stranger",
    [
        "CREATE TABLE jobs (id TEXT, status TEXT, seq INTEGER)",
        "CREATE TABLE redrives (seq INTEGER)",
        "CREATE VIEW jobs AS SELECT 1 AS seq",
        "CREATE TABLE jobs_open_idx (n)",
    ],
)
def test_refuses_tables_of_a_stranger(queue_path: Path, stranger: str):
    """A file whose own tables stand in the way is refused and unchanged."""
    with closing(connect(queue_path)) as con:
        con.execute(stranger)
    before = queue_path.read_bytes()

    with pytest.raises(
        UnusableFile, match=r"^the file's own tables are not those of lease \(.+\); choose another"
    ) as caught:
        open_queue(queue_path)

    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert queue_path.read_bytes() == before


@pytest.mark.parametrize(("number", "table"), [("0003", "tree_leaves"), ("0004", "tally_totals")])
def test_tells_of_a_migration_that_was_applied_by_hand(queue_path: Path, number: str, table: str):
    """The file is refused and unchanged, and the message says how to put it on record."""
    open_queue(queue_path).close()
    with closing(connect(queue_path)) as con:
        con.execute("DELETE FROM _yoyo_migration WHERE migration_id >= ?", [f"queue_{number}"])
    before = queue_path.read_bytes()

    with pytest.raises(UnusableFile) as caught:
        open_queue(queue_path)
    assert str(caught.value) == (
        f"the file does not record a migration whose tables it has (table {table} already exists); "
        "if it was applied by hand, record it with yoyo mark, otherwise choose another file"
    )
    assert queue_path.read_bytes() == before


def test_reports_full_disk_as_such(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is no matter of tables is not called one: SQLite's own error comes out."""

    def connect_small(*arguments, **options) -> sqlite3.Connection:
        con = connect(*arguments, **options)
        con.execute("PRAGMA max_page_count = 3")
        return con

    monkeypatch.setattr(_open, "connect", connect_small)

    with pytest.raises(sqlite3.OperationalError) as caught:
        open_queue(queue_path)

    assert caught.value.sqlite_errorname == "SQLITE_FULL"
    assert schema(queue_path) == []


def test_reports_failing_disk_as_such(queue_path: Path):
    """The failure that ended the transaction is told, not what it did to the runner above it."""
    done = run_code(OPEN_A_LITTLE, queue_path)

    assert output(done) == "SQLITE_IOERR_WRITE disk I/O error"
    assert schema(queue_path) == []


def test_fault_anywhere_leaves_nothing_or_all(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Wherever an opening breaks off, the file is as it was or complete, the connection closed."""
    opened: list[sqlite3.Connection] = []
    left = 0

    class Cursor(sqlite3.Cursor):
        def execute(self, *arguments):
            nonlocal left
            left -= 1
            if left < 0:
                raise Stopped
            return super().execute(*arguments)

    class Connection(sqlite3.Connection):
        def cursor(self, factory=Cursor):
            return super().cursor(factory)

    def connect_failing(path, **_options) -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, isolation_level=None, factory=Connection))
        return opened[-1]

    with closing(connect(queue_path)) as con:
        con.execute("CREATE TABLE before (n)")
    before = schema(queue_path)
    monkeypatch.setattr(_open, "connect", connect_failing)
    found = []
    while True:
        left = len(found)
        try:
            open_queue(queue_path).close()
        except Stopped:
            found.append(schema(queue_path))
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                opened[-1].execute("SELECT 1")
        else:
            break

    whole = schema(queue_path)
    assert len(whole) > 5
    assert found == [before] * found.count(before) + [whole] * found.count(whole)
    assert found.count(before) > 20


def test_probe_failure_leaves_nothing(queue_path: Path):
    """Tables that do not fit are found before the commit."""
    probe = Statement("probe", "SELECT no_such_column FROM jobs;")
    with closing(connect(queue_path)) as con:
        with pytest.raises(UnusableFile, match="no such column: no_such_column"):
            migrate(con, "queue", probe)

        assert not con.in_transaction
    assert schema(queue_path) == []


def test_has_tells_which_sets_a_file_holds(queue_path: Path):
    """A set is there from its first migration on, and nothing is in an empty file."""
    with closing(connect(queue_path)) as con:
        assert not has(con, "queue")
        migrate(con, "queue", OPEN_PROBE)

        assert has(con, "queue")
        assert not has(con, "outbox")
