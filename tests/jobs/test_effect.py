"""The effect of a finish: what commits together with a job's new status, or not at all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease import Permanent, Retryable, jobs
from lease.errors import UnusableFile
from tests.support.queue import (
    ERRORS,
    NOW,
    Hook,
    committed,
    job,
    put_leased,
    put_pending,
    ticket_of,
    unchanged,
)


@pytest.mark.parametrize(
    ("outcome", "status"), [("ok", "done"), ("retry", "pending"), ("permanent", "dead")]
)
def test_finish_calls_effect(con: sqlite3.Connection, queue_path: Path, outcome, status: str):
    """It is told the new status inside the transaction, before the first hook."""
    con.execute("CREATE TABLE notes (status TEXT)")
    ticket = ticket_of(put_leased(con))
    order = Hook()

    def effect(told: str) -> None:
        assert con.in_transaction
        assert committed(queue_path)[0][0]["status"] == "leased"
        order(told)
        con.execute("INSERT INTO notes VALUES (?)", (told,))

    assert jobs.finish(con, ticket, outcome, NOW, fault=order, effect=effect) == status
    assert order == [status, "after-finish", "after-commit"]
    assert con.execute("SELECT status FROM notes").fetchall() == [(status,)]


def test_finish_of_a_stale_ticket_has_no_effect(con: sqlite3.Connection, queue_path: Path):
    """A ticket that is refused changes nothing."""
    ticket = ticket_of(put_leased(con)) | {"token": 99}
    told = Hook()

    with unchanged(con, queue_path):
        assert jobs.finish(con, ticket, "ok", NOW, effect=told) is False
    assert told == []


@pytest.mark.parametrize("kind", ERRORS)
def test_finish_is_undone_by_its_effect(con: sqlite3.Connection, kind: type[BaseException]):
    """What the effect raises comes out as it is; the job stays leased."""
    error = kind("no")
    con.execute("CREATE TABLE notes (status TEXT)")
    row = put_leased(con)

    def effect(told: str) -> None:
        con.execute("INSERT INTO notes VALUES (?)", (told,))
        raise error

    with pytest.raises(kind) as raised:
        jobs.finish(con, ticket_of(row), "ok", NOW, effect=effect)
    assert raised.value is error
    assert not con.in_transaction
    assert job(con) == row
    assert con.execute("SELECT count(*) FROM notes").fetchone() == (0,)


@pytest.mark.parametrize(
    ("error", "status"), [(None, "done"), (Retryable(), "pending"), (Permanent(), "dead")]
)
def test_run_once_passes_effect_on(con: sqlite3.Connection, error: Exception | None, status: str):
    """It is told which event came to what, whatever the sender did to its own copy."""
    put_pending(con)
    told = []

    def send(event) -> bool:
        event["id"] = "changed"
        if error:
            raise error
        return True

    def effect(event, reached: str) -> None:
        assert con.in_transaction
        told.append((event, reached))

    settled = jobs.run_once(con, "w", lambda: NOW, send, 1, effect=effect)

    assert settled == {"id": "job-1", "token": 1, "status": status}
    assert told == [({"id": "job-1", "qty": 7}, status)]


def test_create_queue_leaves_a_borrowed_connection_alone(tmp_path: Path):
    """The queue joins the application's tables; settings stay as they are."""
    with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as con:
        con.execute("PRAGMA journal_mode = WAL")
        con.execute("PRAGMA synchronous = NORMAL")
        con.execute("CREATE TABLE orders (id TEXT)")
        jobs.create_queue(con)

        assert jobs.enqueue(con, {"id": "a", "qty": 1}, 1, 1)
        assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert con.execute("PRAGMA synchronous").fetchone() == (1,)
        assert not con.in_transaction


def test_create_queue_refuses_a_stranger(tmp_path: Path):
    """An application's own jobs are not taken over."""
    with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as con:
        con.execute("CREATE TABLE jobs (title TEXT)")
        with pytest.raises(UnusableFile):
            jobs.create_queue(con)
