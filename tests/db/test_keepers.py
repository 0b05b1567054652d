"""The triggers and views of a queue, compared with those that its migrations make."""

import sqlite3

import pytest

from lease.db.keepers import faults_of

# How many triggers and views each of the queue's migrations makes.
MADE = {
    "queue_0001_jobs_and_redrives": 0,
    "queue_0002_open_jobs": 0,
    "queue_0003_tree": 11,
    "queue_0004_tally": 12,
}
KEPT = [name for name, number in MADE.items() if number]


def keepers(con: sqlite3.Connection) -> dict[str, str]:
    """Return the kind of each trigger and view."""
    rows = con.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('trigger', 'view')")
    return dict(rows.fetchall())


@pytest.mark.parametrize("migration", KEPT)
def test_new_queue_has_them_to_the_letter(con: sqlite3.Connection, migration: str):
    """What `open_queue` has made through yoyo is what the file of the migration says."""
    assert faults_of(con, migration) == []


def test_each_missing_one_is_reported_once(con: sqlite3.Connection):
    """Whatever is dropped is told, by the migration that makes it and by no other."""
    found = dict.fromkeys(KEPT, 0)
    for name, kind in keepers(con).items():
        con.execute("BEGIN")
        # A view takes its triggers along.
        con.execute(f"DROP {kind} {name}")
        line = f"the {kind} {name} is missing; roll back and apply the migration "
        reports = {each: [f for f in faults_of(con, each) if f == line + each] for each in KEPT}
        for migration in KEPT:
            found[migration] += len(reports[migration])
        con.execute("ROLLBACK")

    assert found == {migration: MADE[migration] for migration in KEPT}


def test_changed_one_is_reported(con: sqlite3.Connection):
    """A trigger of the same name that does something else is not taken for ours."""
    con.execute("DROP TRIGGER tally_deleted")
    con.execute("CREATE TRIGGER tally_deleted BEFORE DELETE ON jobs BEGIN SELECT 1; END")

    assert faults_of(con, "queue_0004_tally") == [
        "the trigger tally_deleted is changed; roll back and apply the migration queue_0004_tally"
    ]
    assert faults_of(con, "queue_0003_tree") == []


def test_strangers_triggers_are_their_own(con: sqlite3.Connection):
    """What an application adds is none of our business."""
    con.execute("CREATE TRIGGER audit AFTER INSERT ON jobs BEGIN SELECT 1; END")

    assert [faults_of(con, migration) for migration in KEPT] == [[], []]


@pytest.mark.parametrize("migration", KEPT)
def test_file_without_the_migration(migration: str):
    """Where nothing is there, one line says what is to be done."""
    con = sqlite3.connect(":memory:")

    assert faults_of(con, migration) == [
        f"the file lacks the migration {migration}; open_queue applies it"
    ]
