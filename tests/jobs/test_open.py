"""open_queue: settings, schema, adoption, what is refused, and that failures close the file."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import UnusableFile
from lease.jobs import _open
from lease.worker import claim, enqueue, finish, open_queue, redrive
from tests.support.queue import (
    BARE_SCHEMA,
    ERRORS,
    NOW,
    all_jobs,
    audits,
    committed,
    content,
    descriptors,
    is_closed,
    job,
    opened,
    put_dead,
    put_leased,
    put_pending,
    reading,
    ticket_of,
    without_waiting,
    writing,
)


def one(con: sqlite3.Connection, query: str) -> Any:
    """Return the only value of a query's only row."""
    ((value,),) = con.execute(query).fetchall()
    return value


def test_open_queue_returns_a_connection_with_its_settings(queue_path: Path) -> None:
    """No transactions of the driver's own, one second for a lock, DELETE and FULL."""
    with closing(open_queue(queue_path)) as con:
        assert isinstance(con, sqlite3.Connection)
        assert con.isolation_level is None
        assert one(con, "PRAGMA busy_timeout") == 1000
        assert one(con, "PRAGMA journal_mode") == "delete"
        assert one(con, "PRAGMA synchronous") == 2
        assert not con.in_transaction


def test_open_queue_keeps_its_settings_on_a_current_file(queue_path: Path) -> None:
    """The settings of a connection are in force each time."""
    open_queue(queue_path).close()

    test_open_queue_returns_a_connection_with_its_settings(queue_path)


def test_open_queue_brings_a_log_back_to_a_journal(queue_path: Path) -> None:
    """A queue that somebody switched to write-ahead logging is switched back, with its jobs."""
    with closing(open_queue(queue_path)) as con:
        con.execute("PRAGMA journal_mode = WAL")
        before = put_pending(con)

    with closing(open_queue(queue_path)) as con:
        assert one(con, "PRAGMA journal_mode") == "delete"
        assert all_jobs(con) == [before]


def shape(con: sqlite3.Connection, table: str) -> list[Any]:
    """Return a table's columns, with their types, defaults and constraints, and its indexes."""
    return [
        con.execute(f"PRAGMA table_info({table})").fetchall(),
        [
            (unique, origin, con.execute(f"PRAGMA index_info({name})").fetchall())
            for _, name, unique, origin, _ in con.execute(f"PRAGMA index_list({table})")
            if unique
        ],
    ]


@pytest.mark.parametrize("table", ["jobs", "redrives"])
def test_open_queue_makes_the_contracts_table(con: sqlite3.Connection, table: str) -> None:
    """The columns, their types and their constraints are those of the contract."""
    with closing(sqlite3.connect(":memory:")) as bare:
        bare.executescript(BARE_SCHEMA)

        assert shape(con, table) == shape(bare, table)


@pytest.mark.parametrize("status", ["", "PENDING", "stale", "pending "])
def test_open_queue_makes_a_table_of_four_states(con: sqlite3.Connection, status: str) -> None:
    """No fifth state can be written, by whatever means."""
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        put_pending(con, status=status)


def test_open_queue_makes_tables_that_use_no_seq_twice(con: sqlite3.Connection) -> None:
    """The seq of a deleted row is not given out again."""
    put_dead(con)
    redrive(con, "job-1", NOW, 1000, "n")
    con.execute("DELETE FROM jobs")
    con.execute("DELETE FROM redrives")

    assert put_dead(con)["seq"] == 2
    redrive(con, "job-1", NOW, 1000, "n")
    assert audits(con)[0]["seq"] == 2


def trace(into: list[str]) -> Callable[[sqlite3.Connection], None]:
    """Return what makes a connection write each statement into a list."""

    def prepare(con: sqlite3.Connection) -> None:
        con.set_trace_callback(into.append)

    return prepare


def transactions(statements: list[str]) -> list[str]:
    """Return the statements that begin or end a transaction; savepoints do neither."""
    words = ("BEGIN", "COMMIT", "END", "ROLLBACK")
    return [
        each
        for each in statements
        if each.upper().startswith(words) and not each.upper().startswith("ROLLBACK TO")
    ]


@pytest.mark.parametrize(
    "schema", [pytest.param("", id="new"), pytest.param(BARE_SCHEMA, id="bare")]
)
def test_open_queue_takes_one_transaction(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    """Everything that is made is made between one BEGIN IMMEDIATE and one COMMIT."""
    with closing(sqlite3.connect(queue_path)) as bare:
        bare.executescript(schema)
    statements: list[str] = []
    opened(monkeypatch, trace(statements))
    open_queue(queue_path).close()

    assert transactions(statements) == ["BEGIN IMMEDIATE", "COMMIT"]
    begin, commit = statements.index("BEGIN IMMEDIATE"), statements.index("COMMIT")
    made = [
        at
        for at, each in enumerate(statements)
        if each.lstrip().upper().startswith(("CREATE", "INSERT", "UPDATE", "DELETE", "ALTER"))
    ]
    assert made
    assert begin < min(made)
    assert max(made) < commit


def test_open_queue_of_a_current_file_writes_nothing(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening again takes no transaction, changes no byte, and works beside a writer."""
    open_queue(queue_path).close()
    before = content(queue_path)
    statements: list[str] = []
    opened(monkeypatch, trace(statements))

    with writing(queue_path):
        open_queue(queue_path).close()
    assert transactions(statements) == []
    assert before == content(queue_path)


def populate(con: sqlite3.Connection) -> tuple[list[Any], list[Any]]:
    """Put a job in every state and an audit row; return both tables."""
    put_pending(con, id="pending", attempts=1, token=1, reason="retry")
    put_leased(con, id="leased")
    put_pending(con, id="done", status="done")
    put_dead(con, id="dead")
    con.execute("INSERT INTO redrives (id, token, at_ms, note) VALUES ('leased', 2, 7, 'why')")
    return all_jobs(con), audits(con)


def test_open_queue_keeps_work_and_audit_rows(queue_path: Path) -> None:
    """A restart finds every job and audit row as it was."""
    with closing(open_queue(queue_path)) as con:
        before = populate(con)
    for _ in range(2):
        open_queue(queue_path).close()

    assert committed(queue_path) == before


def bare_queue(path: Path) -> tuple[list[Any], list[Any]]:
    """Make the contract's tables by hand, with rows in them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as con:
        con.executescript(BARE_SCHEMA)
        return populate(con)


def test_open_queue_adopts_a_bare_queue(queue_path: Path) -> None:
    """A queue made by hand keeps its rows, and every verb works on them."""
    before = bare_queue(queue_path)

    with closing(open_queue(queue_path)) as con:
        assert (all_jobs(con), audits(con)) == before
        leased = ticket_of(job(con, "leased"))
        assert finish(con, leased, "ok", NOW) == "done"
        assert claim(con, "worker-b", NOW)["id"] == "pending"
        assert redrive(con, "dead", NOW, 1000, "again") is True
        assert enqueue(con, {"id": "done", "qty": 7}, NOW, 1000) is False
        assert enqueue(con, {"id": "new", "qty": 1}, NOW, 1000) is True
        assert [claim(con, "worker-b", NOW)["id"] for _ in range(2)] == ["dead", "new"]
        assert [audit["seq"] for audit in audits(con)] == [1, 2]


@pytest.mark.parametrize("table", ["jobs", "redrives"])
def test_open_queue_makes_only_the_missing_table(queue_path: Path, table: str) -> None:
    """Where one of the two tables is there, it stays and the other is made."""
    before = bare_queue(queue_path)
    with closing(sqlite3.connect(queue_path)) as con:
        con.execute(f"DROP TABLE {table}")
    open_queue(queue_path).close()

    jobs, rows = committed(queue_path)
    assert jobs == ([] if table == "jobs" else before[0])
    assert rows == ([] if table == "redrives" else before[1])


def test_open_queue_leaves_other_tables_alone(queue_path: Path) -> None:
    """Tables that are not the queue's stay as they are."""
    with closing(sqlite3.connect(queue_path)) as con:
        con.execute("CREATE TABLE orders (n)")
        con.execute("INSERT INTO orders VALUES (1)")
        con.commit()

    with closing(open_queue(queue_path)) as con:
        assert one(con, "SELECT n FROM orders") == 1


STRANGERS = [
    pytest.param("CREATE TABLE jobs (name TEXT)", id="jobs"),
    pytest.param("CREATE TABLE redrives (name TEXT)", id="redrives"),
    pytest.param("CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id, status)", id="jobs-alike"),
    pytest.param("CREATE VIEW jobs AS SELECT 1 AS seq", id="view"),
]


@pytest.mark.parametrize("script", STRANGERS)
def test_open_queue_refuses_a_strangers_tables(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """Tables of the same names and other columns are refused, unchanged, and closed."""
    with closing(sqlite3.connect(queue_path)) as con:
        con.executescript(script)
    before, made = content(queue_path), opened(monkeypatch)

    with pytest.raises(UnusableFile, match="choose another file"):
        open_queue(queue_path)
    assert [is_closed(con) for con in made] == [True]
    assert descriptors(queue_path.parent) == []
    assert before == content(queue_path)


def test_open_queue_refuses_a_file_from_the_future(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that this version does not know is named; the file is unchanged and closed."""
    with closing(open_queue(queue_path)) as con:
        put_pending(con)
        con.execute(
            "INSERT INTO _yoyo_migration (migration_hash, migration_id)"
            " VALUES ('f', 'queue_9999_what_is_to_come')"
        )
    before, made = content(queue_path), opened(monkeypatch)

    with pytest.raises(UnusableFile, match=r"queue_9999_what_is_to_come.* upgrade"):
        open_queue(queue_path)
    assert [is_closed(con) for con in made] == [True]
    assert before == content(queue_path)


def test_open_queue_refuses_what_is_no_database(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of another kind is SQLite's own error; the file is unchanged and closed."""
    queue_path.write_text("this is no database, however long a text it is made to be" * 20)
    before, made = content(queue_path), opened(monkeypatch)

    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        open_queue(queue_path)
    assert [is_closed(con) for con in made] == [True]
    assert before == content(queue_path)


@pytest.mark.parametrize("path", ["", b"", ":memory:", b":memory:", Path(":memory:")])
def test_open_queue_refuses_what_names_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any
) -> None:
    """An in-memory or temporary database is a ValueError, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    made = opened(monkeypatch)

    with pytest.raises(ValueError, match="must name a file"):
        open_queue(path)
    assert made == []
    assert os.listdir(tmp_path) == []


def test_open_queue_of_a_folder(tmp_path: Path) -> None:
    """A folder is no file, and stays empty."""
    with pytest.raises(sqlite3.OperationalError):
        open_queue(tmp_path)
    assert os.listdir(tmp_path) == []


def test_open_queue_in_a_missing_folder(tmp_path: Path) -> None:
    """No folder is made for a queue."""
    with pytest.raises(sqlite3.OperationalError):
        open_queue(tmp_path / "no" / "queue.db")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["make_durable", "migrate"])
@pytest.mark.parametrize("kind", ERRORS)
def test_open_queue_closes_whatever_fails(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, kind: type[BaseException]
) -> None:
    """Any error of any step comes out as it is, with the connection closed."""
    error, made = kind("told to"), opened(monkeypatch)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(_open, step, fail)
    with pytest.raises(kind) as caught:
        open_queue(queue_path)
    assert caught.value is error
    assert [is_closed(con) for con in made] == [True]
    assert descriptors(queue_path.parent) == []


@pytest.mark.parametrize("table", ["jobs", "redrives"])
def test_open_queue_failing_halfway_leaves_nothing(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """A table that cannot be made leaves a file with no table at all; the next try succeeds."""

    def forbid(con: sqlite3.Connection) -> None:
        def authorize(action: int, name: str | None, *_: object) -> int:
            made = action == sqlite3.SQLITE_CREATE_TABLE and name == table
            return sqlite3.SQLITE_DENY if made else sqlite3.SQLITE_OK

        con.set_authorizer(authorize)

    with monkeypatch.context() as patch:
        made = opened(patch, forbid)
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            open_queue(queue_path)
    assert [is_closed(con) for con in made] == [True]
    with closing(sqlite3.connect(queue_path)) as con:
        assert con.execute("SELECT name FROM sqlite_schema").fetchall() == []
    with closing(open_queue(queue_path)) as con:
        assert enqueue(con, {"id": "a", "qty": 1}, NOW, 1000) is True


@pytest.mark.parametrize("lock", [reading, writing])
def test_open_queue_of_a_locked_file(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch, lock: Callable[[Path], Any]
) -> None:
    """What cannot be locked or committed is refused, unchanged and closed, rows and all."""
    before = bare_queue(queue_path)
    bytes_before, made = content(queue_path), opened(monkeypatch, without_waiting)

    with lock(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        open_queue(queue_path)
    assert [is_closed(con) for con in made] == [True]
    assert bytes_before == content(queue_path)
    open_queue(queue_path).close()
    assert committed(queue_path) == before
