"""A database that is somebody else's, from the future, or empty."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease import UnusableFile, open_queue, run_file
from lease.cli._failures import Failure, blamed_on
from lease.db.migrations import migrate
from lease.db.statements import Statement
from lease.inbox import open_inbox
from lease.outbox import open_outbox
from tests.support.hostile import COMMANDS, ON_NEW, ON_OUTBOX, ON_QUEUE, complaint, listing, ran

FOREIGN = {
    "queue": "CREATE TABLE jobs (title TEXT, salary INTEGER);",
    "audit": "CREATE TABLE redrives (seq, id);",
    "inbox": "CREATE TABLE inbox (subject TEXT);",
    "effects": "CREATE TABLE effects (name TEXT);",
    "outbox": "CREATE TABLE outbox (letter TEXT);",
    "other": "CREATE TABLE customers (name TEXT);",
    "view": "CREATE VIEW jobs AS SELECT 1 AS seq;",
}
#: Which of them have nothing to do with a command that makes its own file.
HARMLESS = {
    "init": {"inbox", "effects", "outbox", "other"},
    "outbox init": {"queue", "audit", "inbox", "effects", "other", "view"},
    "receive": {"queue", "audit", "outbox", "other", "view"},
}


def make(path: Path, script: str, mode: str) -> None:
    with closing(sqlite3.connect(path)) as con:
        con.execute(f"PRAGMA journal_mode = {mode}")
        con.executescript(script)


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("command", COMMANDS)
def test_command_leaves_a_strangers_file_alone(
    tmp_path: Path, command: str, foreign: str, mode: str
):
    """Not a table, not a setting, not a byte of it changes."""
    if foreign in HARMLESS.get(command, ()):
        return
    make(tmp_path / "it.db", FOREIGN[foreign], mode)
    before = listing(tmp_path)

    said = complaint(ran(command, tmp_path / "it.db"))
    assert "it.db" in said
    assert listing(tmp_path) == before


@pytest.mark.parametrize("command", [*ON_QUEUE, *ON_OUTBOX])
def test_command_puts_no_queue_into_an_empty_file(tmp_path: Path, command: str):
    """A file that was cut off to nothing is no queue without jobs."""
    (tmp_path / "it.db").touch(0o600)
    before = listing(tmp_path)

    complaint(ran(command, tmp_path / "it.db"))
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("opener", "mode"), [(open_queue, "delete"), (open_inbox, "delete"), (open_outbox, "wal")]
)
def test_file_from_the_future_keeps_its_settings(tmp_path: Path, opener, mode: str):
    """What a later version made is refused before a setting changes."""
    opener(tmp_path / "it.db").close()
    kept = "delete" if mode == "wal" else "wal"
    name = opener.__name__.removeprefix("open_")
    make(
        tmp_path / "it.db",
        "INSERT INTO _yoyo_migration (migration_hash, migration_id)"
        f" VALUES ('f', '{name}_9999_to_come');",
        kept,
    )
    before = listing(tmp_path)

    with pytest.raises(UnusableFile, match=f"{name}_9999_to_come.*upgrade"):
        opener(tmp_path / "it.db")
    assert listing(tmp_path) == before


def test_worker_makes_no_queue(tmp_path: Path):
    """`run_file` and an inbox that must exist take nothing for what it is not."""
    make(tmp_path / "it.db", FOREIGN["other"], "delete")
    before = listing(tmp_path)

    with pytest.raises(UnusableFile, match=r"holds no queue .*with: lease init FILE$"):
        run_file(tmp_path / "it.db", "w", lambda: 0, lambda _event: True, 0)
    with pytest.raises(UnusableFile, match=r"holds no inbox .*with: lease receive --db FILE$"):
        open_inbox(tmp_path / "it.db", create=False)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("command", ON_NEW)
def test_making_adds_to_a_file_that_has_room(tmp_path: Path, command: str):
    """Whoever asks for a queue, an outbox or an inbox in a file of his own gets it."""
    opener, table = {
        "init": (open_queue, "jobs"),
        "outbox init": (open_outbox, "outbox"),
        "receive": (open_inbox, "inbox"),
    }[command]
    make(tmp_path / "it.db", FOREIGN["other"], "delete")
    opener(tmp_path / "it.db").close()

    with closing(sqlite3.connect(tmp_path / "it.db")) as con:
        tables = {name for (name,) in con.execute("SELECT name FROM sqlite_schema")}
    assert {"customers", table} <= tables


def test_incomplete_installation_is_no_missing_file(tmp_path: Path):
    """What is missing is named, where the file itself is there."""
    (tmp_path / "it.db").touch()

    with pytest.raises(Failure, match="lacks the migrations"), blamed_on(tmp_path / "it.db"):
        raise FileNotFoundError("the installed lease package lacks the migrations queue_*")


def test_lock_is_not_taken_for_a_strangers_file(tmp_path: Path):
    """A file made by hand that cannot be looked at is locked, and not said to hold no queue."""
    make(tmp_path / "it.db", FOREIGN["other"], "delete")
    probe = Statement("probe", "BEGIN IMMEDIATE")
    with (
        closing(sqlite3.connect(tmp_path / "it.db", isolation_level=None)) as holder,
        closing(sqlite3.connect(tmp_path / "it.db", isolation_level=None, timeout=0)) as con,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            migrate(con, "queue", probe, create=False)
