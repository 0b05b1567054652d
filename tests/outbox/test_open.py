"""create_outbox and open_outbox: the schema in one transaction, and whose settings are touched."""

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease.db import durability
from lease.errors import UnusableFile, WalResetWarning
from lease.outbox import create_outbox, open_outbox, pending, record
from tests.support.outbox import committed
from tests.support.queue import content


def settings(con: sqlite3.Connection) -> tuple[str, int]:
    """Return the journal mode and the level of synchronous."""
    return (
        con.execute("PRAGMA journal_mode").fetchone()[0],
        con.execute("PRAGMA synchronous").fetchone()[0],
    )


def test_open_is_durable(outbox_path: Path):
    """An outbox of its own has WAL and FULL, a second of patience, and no implicit transaction."""
    with closing(open_outbox(outbox_path)) as con:
        assert settings(con) == ("wal", 2)
        assert con.isolation_level is None
        assert con.execute("PRAGMA busy_timeout").fetchone() == (1000,)
        assert not con.in_transaction


@pytest.mark.parametrize(
    ("asked", "kept"), [("delete", "delete"), (None, "delete"), ("wal", "wal")]
)
def test_open_takes_a_journal_mode(outbox_path: Path, asked: Any, kept: str):
    """It may be another, and a new file has no log of its own accord."""
    with closing(open_outbox(outbox_path, journal_mode=asked)) as con:
        assert settings(con) == (kept, 2)
    with closing(open_outbox(outbox_path, journal_mode=None)) as con:
        assert settings(con) == (kept, 2)


@pytest.mark.parametrize("asked", ["", "WAL", "memory", b"wal", 1])
def test_open_refuses_another_journal_mode(outbox_path: Path, asked: Any):
    """Nothing is made for a mode that there is not."""
    with pytest.raises(ValueError, match=r"^journal_mode must be 'delete', 'wal' or None, not "):
        open_outbox(outbox_path, journal_mode=asked)
    assert not outbox_path.exists()


def test_open_warns_of_a_faulty_sqlite(outbox_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As a queue with a log does: once a process, in the caller's line."""
    monkeypatch.setattr(durability, "has_wal_reset_fault", lambda: True)
    durability._warn_of_wal_reset.cache_clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        open_outbox(outbox_path, journal_mode="delete").close()
        assert seen == []
        for _ in range(2):
            open_outbox(outbox_path).close()

    (warning,) = seen
    assert warning.category is WalResetWarning
    assert warning.filename == __file__


def test_open_makes_a_private_file(outbox_path: Path):
    """Payloads are nobody else's to read."""
    open_outbox(outbox_path).close()

    assert outbox_path.stat().st_mode & 0o777 == 0o600


def test_open_keeps_what_is_there(outbox_path: Path):
    """Opening again loses nothing and writes nothing."""
    with closing(open_outbox(outbox_path)) as con:
        made = record(con, "made", {})
    before = content(outbox_path)

    with closing(open_outbox(outbox_path)) as con:
        assert pending(con) == [made]
    assert content(outbox_path) == before


def test_open_closes_on_failure(outbox_path: Path):
    """A file that is no database is refused, and not held open."""
    outbox_path.write_text("no database, and long enough to be seen as none" * 10)

    with pytest.raises(sqlite3.DatabaseError):
        open_outbox(outbox_path)


def test_create_has_the_columns_and_checks(box: sqlite3.Connection):
    """Both tables have the columns that were promised, and a third state is refused."""
    outbox = {row[1]: row[2:5] for row in box.execute("PRAGMA table_info(outbox)")}
    deliveries = {row[1]: row[2:4] for row in box.execute("PRAGMA table_info(deliveries)")}

    assert outbox == {
        "seq": ("INTEGER", 0, None),
        "id": ("TEXT", 1, None),
        "event_type": ("TEXT", 1, None),
        "payload_json": ("TEXT", 1, None),
        "state": ("TEXT", 1, None),
        "dispatch_count": ("INTEGER", 1, "0"),
        "created_at": ("TEXT", 1, None),
        "processed_at": ("TEXT", 0, None),
        "dispatched_at": ("TEXT", 0, None),
    }
    assert deliveries == {
        "outbox_id": ("TEXT", 1),
        "body_json": ("TEXT", 1),
        "delivered_at": ("TEXT", 1),
    }
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        box.execute(
            "INSERT INTO outbox (id, event_type, payload_json, state, created_at) "
            "VALUES ('a', 't', '{}', 'lost', 'now')"
        )


@pytest.mark.parametrize(
    "odd",
    ["''", "'a b'", "'é'", "x'61'", "'a' || char(0)", "CAST(x'6100ff' AS TEXT)", f"'{'a' * 129}'"],
)
@pytest.mark.parametrize(
    ("rule", "row"),
    [("outbox_id_is_identifier", "{}, 't'"), ("outbox_event_type_is_word", "'a', {}")],
)
def test_create_refuses_what_record_would(box: sqlite3.Connection, rule: str, row: str, odd: str):
    """No record of plain SQL has an id or a type that would stop the others."""
    with pytest.raises(sqlite3.IntegrityError, match=rule):
        box.execute(
            "INSERT INTO outbox (id, event_type, payload_json, state, created_at) "
            f"VALUES ({row.format(odd)}, '{{}}', 'pending', 'now')"
        )


def test_create_minds_no_encoding(outbox_path: Path):
    """An application may keep its texts in UTF-16, with two bytes a letter."""
    with closing(sqlite3.connect(outbox_path, isolation_level=None)) as con:
        con.execute("PRAGMA encoding = 'UTF-16'")
        create_outbox(con)
        made = record(con, "made", {}, id="a" * 64)

        assert con.execute("PRAGMA encoding").fetchone()[0].startswith("UTF-16")
        assert pending(con) == [made]


def test_create_takes_records_of_plain_sql(box: sqlite3.Connection):
    """A trigger, or a program in another language, needs to know five columns only."""
    box.execute(
        "INSERT INTO outbox (id, event_type, payload_json, state, created_at) "
        "VALUES ('a', 't', '{}', 'pending', '2026-01-01T00:00:00+00:00')"
    )

    assert pending(box) == [{"id": "a", "event_type": "t", "payload_json": "{}"}]


def test_create_leaves_a_borrowed_connection_alone(tmp_path: Path):
    """The application's settings, tables and open connection stay what they are."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as con:
        con.execute("PRAGMA synchronous = NORMAL")
        con.execute("CREATE TABLE orders (id TEXT)")
        before = settings(con), con.isolation_level
        create_outbox(con)

        assert (settings(con), con.isolation_level) == before
        assert not con.in_transaction
        record(con, "made", {})
    records, _ = committed(tmp_path / "app.db")
    assert len(records) == 1


def test_create_is_one_transaction(tmp_path: Path):
    """One BEGIN and one COMMIT hold all of it; a current file is only read."""
    with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as con:
        said: list[str] = []
        con.set_trace_callback(said.append)
        create_outbox(con)
        words = [each.split()[0].upper() for each in said]
        assert (words.count("BEGIN"), words.count("COMMIT")) == (1, 1)
        said.clear()
        create_outbox(con)
        assert {each.split()[0].upper() for each in said} == {"SELECT"}


def test_create_refuses_a_stranger(tmp_path: Path):
    """An application's own table of that name is not taken over, nor touched."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE outbox (message TEXT)")
        before = con.execute("SELECT sql FROM sqlite_schema").fetchall()
        with pytest.raises(UnusableFile, match="the file's own tables are not those of lease"):
            create_outbox(con)

        assert con.execute("SELECT sql FROM sqlite_schema").fetchall() == before
        assert not con.in_transaction


def test_create_refuses_an_open_transaction(tmp_path: Path):
    """The schema is not slipped into somebody else's transaction."""
    with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as con:
        con.execute("BEGIN")
        with pytest.raises(sqlite3.ProgrammingError, match="already has an open transaction"):
            create_outbox(con)
        assert con.in_transaction
