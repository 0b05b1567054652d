"""open_inbox and create_inbox: what they make, keep and refuse."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from lease import UnusableFile, jobs
from lease.inbox import accept, create_inbox, open_inbox
from lease.inbox._open import require_writable
from tests.support.http import rows
from tests.support.queue import content


def test_open_inbox_makes_a_durable_private_file(tmp_path: Path) -> None:
    """A new inbox is its user's alone, autocommits, and syncs each commit of a rollback journal."""
    path = tmp_path / "inbox.db"
    with closing(open_inbox(path)) as con:
        settings = [
            con.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        ]

        assert settings == ["delete", 2]
        assert con.isolation_level is None
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert rows(path) == ([], [])


def test_open_inbox_puts_its_journal_back(tmp_path: Path) -> None:
    """A file that was left in another journal mode is set to the one that is promised."""
    path = tmp_path / "inbox.db"
    with closing(open_inbox(path)) as con:
        con.execute("PRAGMA journal_mode = WAL")

    with closing(open_inbox(path)) as con:
        assert con.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_open_inbox_keeps_what_is_there(tmp_path: Path) -> None:
    """A current inbox is opened without a byte being written, and still knows its events."""
    path = tmp_path / "inbox.db"
    with closing(open_inbox(path)) as con:
        accept(con, {"id": "a", "qty": 1}, 5)
    before = content(path)

    with closing(open_inbox(path)) as con:
        assert content(path) == before
        assert accept(con, {"id": "a", "qty": 1}, 6) is False


def test_open_inbox_without_create_makes_no_file(tmp_path: Path) -> None:
    """With create=False a missing inbox is an error and stays missing."""
    path = tmp_path / "missing.db"

    with pytest.raises(FileNotFoundError, match=r"no inbox file at .*missing\.db"):
        open_inbox(path, create=False)
    assert not path.exists()


def test_open_inbox_without_create_opens_what_exists(tmp_path: Path) -> None:
    """With create=False an existing inbox is opened."""
    path = tmp_path / "inbox.db"
    open_inbox(path).close()

    with closing(open_inbox(path, create=False)) as con:
        assert accept(con, {"id": "a", "qty": 1}, 5) is True


@pytest.mark.parametrize("table", ["inbox", "effects"])
def test_open_inbox_refuses_a_strangers_table(tmp_path: Path, table: str) -> None:
    """A file with another table of one of the names is refused, closed and left as it is."""
    path = tmp_path / "stranger.db"
    with closing(sqlite3.connect(path)) as con:
        con.execute(f"CREATE TABLE {table} (x)")
    before = content(path)

    with pytest.raises(UnusableFile, match=f"table {table} already exists"):
        open_inbox(path)
    assert content(path) == before


def test_create_inbox_leaves_the_connection_as_it_was(tmp_path: Path) -> None:
    """The application's own database gets the tables, and keeps its journal and its rows."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as con:
        con.execute("PRAGMA journal_mode = WAL")
        con.execute("CREATE TABLE stock (id TEXT)")

        create_inbox(con)
        create_inbox(con)

        assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert accept(con, {"id": "a", "qty": 1}, 5) is True


def test_inbox_shares_a_file_with_a_queue(tmp_path: Path) -> None:
    """Both sets of tables live in one file, and either opens it."""
    path = tmp_path / "both.db"
    with closing(jobs.open_queue(path)) as con:
        create_inbox(con)
        jobs.enqueue(con, {"id": "a", "qty": 1}, 5, 5)
        accept(con, {"id": "a", "qty": 1}, 5)

    jobs.open_queue(path).close()
    open_inbox(path).close()
    assert rows(path) == ([("a", 1, 1)], [("a", 1)])


BAD_INBOX = {
    "inbox_id_is_identifier": [
        ("a b", 1, 1, 5, 5),
        ("", 1, 1, 5, 5),
        ("a" * 65, 1, 1, 5, 5),
        (b"a", 1, 1, 5, 5),
        ("a\0b", 1, 1, 5, 5),
    ],
    "inbox_qty_in_range": [
        ("a", 0, 1, 5, 5),
        ("a", 1001, 1, 5, 5),
        ("a", 1.5, 1, 5, 5),
        ("a", "x", 1, 5, 5),
    ],
    "inbox_requests_counted": [("a", 1, 0, 5, 5), ("a", 1, 1.5, 5, 5)],
    "inbox_times_in_order": [
        ("a", 1, 1, -1, 5),
        ("a", 1, 1, 6, 5),
        ("a", 1, 1, 5, 10**15 + 1),
        ("a", 1, 1, "x", 5),
        ("a", 1, 1, 5, "x"),
    ],
}
BAD_EFFECTS = {
    "effects_qty_in_range": [(1, "a", 0, 5), (1, "a", 1001, 5), (1, "a", "x", 5)],
    "effects_at_ms_in_range": [(1, "a", 1, -1), (1, "a", 1, 10**15 + 1), (1, "a", 1, "x")],
}


@pytest.mark.parametrize(
    ("rule", "row"), [(rule, row) for rule, rows in BAD_INBOX.items() for row in rows]
)
def test_inbox_refuses_a_row(tmp_path: Path, rule: str, row: tuple[object, ...]) -> None:
    """The schema itself names the rule that a row made by hand would break."""
    with closing(open_inbox(tmp_path / "inbox.db")) as con:
        con.execute("INSERT INTO inbox VALUES (?, ?, ?, ?, ?)", ("a" * 64, 1000, 1, 0, 10**15))
        with pytest.raises(sqlite3.IntegrityError, match=rule):
            con.execute("INSERT INTO inbox VALUES (?, ?, ?, ?, ?)", row)


@pytest.mark.parametrize(
    ("rule", "row"), [(rule, row) for rule, rows in BAD_EFFECTS.items() for row in rows]
)
def test_effects_refuses_a_row(tmp_path: Path, rule: str, row: tuple[object, ...]) -> None:
    """The schema itself names the rule that an effect made by hand would break."""
    with closing(open_inbox(tmp_path / "inbox.db")) as con:
        con.execute("INSERT INTO effects VALUES (?, ?, ?, ?)", (9, "b", 1000, 10**15))
        with pytest.raises(sqlite3.IntegrityError, match=rule):
            con.execute("INSERT INTO effects VALUES (?, ?, ?, ?)", row)


def test_effects_allows_one_an_event(tmp_path: Path) -> None:
    """A second effect of an event, and one without an inbox row, are refused by the schema."""
    with closing(open_inbox(tmp_path / "inbox.db")) as con:
        con.execute("PRAGMA foreign_keys = ON")
        accept(con, {"id": "a", "qty": 1}, 5)

        with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE constraint failed: effects\.id"):
            con.execute("INSERT INTO effects VALUES (2, 'a', 1, 5)")
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            con.execute("INSERT INTO effects VALUES (2, 'b', 1, 5)")


@pytest.mark.parametrize(
    ("closed", "says"), [("inbox.db", "^it may only be read"), ("", "^its folder may only be read")]
)
def test_require_writable_refuses_what_may_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str, says: str
) -> None:
    """A file, and a folder in which no journal can be made; a link to it is followed."""
    path = tmp_path / "inbox.db"
    open_inbox(path).close()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(path)
    require_writable(path)

    monkeypatch.setattr(os, "access", lambda name, _right: Path(name) != tmp_path / closed)
    for name in (path, tmp_path / "elsewhere" / "link"):
        with pytest.raises(UnusableFile, match=says):
            require_writable(name)
