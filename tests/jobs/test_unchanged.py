"""A verb that changes nothing needs the write lock alone: a long reader is no obstacle to it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lease import Conflict, jobs
from tests.support.queue import (
    NOW,
    Hook,
    Job,
    job,
    put_leased,
    put_pending,
    reading,
    ticket_of,
    unchanged,
    without_waiting,
)

STALE = 99


class Idle(NamedTuple):
    """A verb with nothing to do: called with a hook and the row that it starts from."""

    call: Callable[[sqlite3.Connection, Hook, Job], Any]
    result: Any


def stale(row: Job) -> Job:
    """Return a ticket that is no longer the job's."""
    return ticket_of(row) | {"token": STALE}


def conflicting(con: sqlite3.Connection) -> str:
    """Send in a quantity that is not the recorded one; return what it came to."""
    with pytest.raises(Conflict):
        jobs.enqueue(con, {"id": "job-1", "qty": 8}, NOW, 1000)
    return "conflict"


EVENT = {"id": "job-1", "qty": 7}
OTHER = {"id": "job-1", "qty": 8}

IDLE = {
    "enqueue-duplicate": Idle(lambda con, _, row: jobs.enqueue(con, EVENT, NOW, 1000), False),
    "enqueue-conflict": Idle(lambda con, _, row: conflicting(con), "conflict"),
    "enqueue-many-none-new": Idle(
        lambda con, hook, row: jobs.enqueue_many(con, [EVENT, OTHER], NOW, 1000, fault=hook),
        ["duplicate", "conflict"],
    ),
    "enqueue-many-empty": Idle(
        lambda con, hook, row: jobs.enqueue_many(con, [], NOW, 1000, fault=hook), []
    ),
    "claim-idle": Idle(lambda con, hook, row: jobs.claim(con, "w", NOW, fault=hook), None),
    "claim-many-idle": Idle(
        lambda con, hook, row: jobs.claim_many(con, "w", NOW, 10, fault=hook), []
    ),
    "finish-stale": Idle(
        lambda con, hook, row: jobs.finish(con, stale(row), "ok", NOW, fault=hook), False
    ),
    "finish-many-all-stale": Idle(
        lambda con, hook, row: jobs.finish_many(
            con, [(stale(row), "ok", 0), (stale(row), "retry", 5)], NOW, fault=hook
        ),
        [False, False],
    ),
    "finish-and-claim-neither": Idle(
        lambda con, hook, row: jobs.finish_and_claim(
            con, [(stale(row), "ok", 0)], "w", NOW, 10, fault=hook
        ),
        ([False], []),
    ),
    "renew-stale": Idle(
        lambda con, hook, row: jobs.renew(con, stale(row), NOW, 5000, fault=hook), None
    ),
}

each_idle = pytest.mark.parametrize("idle", IDLE.values(), ids=IDLE)


@each_idle
def test_unchanged_beside_a_reader(con: sqlite3.Connection, queue_path: Path, idle: Idle):
    """Somebody who reads for long does not fail it; the file stays as it is, to the byte."""
    row = put_leased(con)
    without_waiting(con)
    hook = Hook()

    with reading(queue_path), unchanged(con, queue_path):
        assert idle.call(con, hook, row) == idle.result
    assert hook == []


def test_renew_to_the_same_end_beside_a_reader(con: sqlite3.Connection, queue_path: Path):
    """A lease that cannot grow is granted again without a change."""
    row = put_leased(con)
    without_waiting(con)

    with reading(queue_path), unchanged(con, queue_path):
        assert jobs.renew(con, ticket_of(row), NOW, 1) == ticket_of(row)


@each_idle
def test_unchanged_amid_a_half_read_query(con: sqlite3.Connection, idle: Idle):
    """A query of the application's own, read half-way on the same connection, goes on."""
    row = put_leased(con)
    query = con.execute("SELECT 1 UNION ALL SELECT qty FROM jobs UNION ALL SELECT 3")
    assert query.fetchone() == (1,)

    assert idle.call(con, Hook(), row) == idle.result
    assert query.fetchall() == [(7,), (3,)]


def test_claim_that_only_buries_is_a_change(con: sqlite3.Connection, queue_path: Path):
    """A quarantine is committed, and for that the reader has to be out of the way."""
    put_pending(con, deadline=NOW)
    without_waiting(con)

    with reading(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        jobs.claim(con, "w", NOW)
    assert job(con)["status"] == "pending"

    assert jobs.claim(con, "w", NOW) is None
    assert job(con)["status"] == "dead"


@pytest.mark.parametrize("at", ["effect", "after-finish"])
@pytest.mark.parametrize(
    "schema", ["CREATE TABLE notes (n)", "PRAGMA user_version = 7", "DROP TABLE mine"]
)
def test_finish_commits_what_a_callback_does_to_the_schema(
    con: sqlite3.Connection, queue_path: Path, at: str, schema: str
):
    """A callback runs only once a job is settled, so that whatever it does is committed."""
    con.execute("CREATE TABLE mine (n)")
    ticket = ticket_of(put_leased(con))

    def act(told: str) -> None:
        if told in (at, "done"):
            con.execute(schema)

    callback = {"effect": act} if at == "effect" else {"fault": act}
    assert jobs.finish(con, ticket, "ok", NOW, **callback) == "done"

    with reading(queue_path):
        tables = {name for (name,) in con.execute("SELECT name FROM sqlite_schema")}
        done = {
            "CREATE TABLE notes (n)": "notes" in tables,
            "PRAGMA user_version = 7": con.execute("PRAGMA user_version").fetchone() == (7,),
            "DROP TABLE mine": "mine" not in tables,
        }
    assert [each for each, was in done.items() if was] == [schema]


@each_idle
def test_unchanged_does_not_undo_a_write_in_progress_in_silence(
    con: sqlite3.Connection, idle: Idle
):
    """A half-read RETURNING of the application's own is an open write: it is lost with an error."""
    put_leased(con)
    con.execute("CREATE TABLE theirs (n INTEGER)")
    theirs = con.execute("INSERT INTO theirs VALUES (1), (2) RETURNING n")
    assert theirs.fetchone() == (1,)

    with pytest.raises(sqlite3.OperationalError, match="SQL statements in progress"):
        idle.call(con, Hook(), job(con))
    assert not con.in_transaction
