"""next_due: the instant from which a claim changes something, and not before."""

import sqlite3
from pathlib import Path

import pytest

from lease import jobs
from tests.support.queue import DEADLINE, NOW, put_dead, put_leased, put_pending, unchanged, writing


def test_next_due_is_none_without_an_open_job(con: sqlite3.Connection) -> None:
    """Dead and done jobs never need a claim again."""
    put_dead(con, id="job-1")
    put_dead(con, id="job-2", status="done", reason=None)

    assert jobs.next_due(con) is None


@pytest.mark.parametrize(
    ("columns", "due_ms"),
    [
        pytest.param({"available_at": NOW + 5}, NOW + 5, id="available"),
        pytest.param({"available_at": NOW + 5, "deadline": NOW + 3}, NOW + 3, id="deadline-first"),
        pytest.param({"attempts": 3, "available_at": NOW + 5}, 0, id="exhausted"),
        pytest.param({"attempts": 2, "available_at": NOW + 5}, NOW + 5, id="one-attempt-left"),
    ],
)
def test_next_due_of_a_pending_job(
    con: sqlite3.Connection, columns: dict[str, int], due_ms: int
) -> None:
    """A pending job is due when it is available, too late, or out of attempts."""
    put_pending(con, **columns)

    assert jobs.next_due(con) == due_ms


def test_next_due_of_a_leased_job_is_its_lease_end(con: sqlite3.Connection) -> None:
    """Until its lease ends a job is its holder's, also with its attempts used up."""
    put_leased(con, attempts=3, lease_until=NOW + 9)

    assert jobs.next_due(con) == NOW + 9


@pytest.mark.parametrize("instant", ["soon", b"x"])
def test_next_due_passes_over_what_is_no_instant(con: sqlite3.Connection, instant: object) -> None:
    """A lease that somebody's own SQL has given no end never ends, and hides no other job."""
    put_leased(con, id="job-1", lease_until=instant)

    assert jobs.next_due(con) is None
    put_leased(con, id="job-2", lease_until=NOW + 4)
    assert jobs.next_due(con) == NOW + 4


def test_next_due_is_the_earliest_of_all(con: sqlite3.Connection) -> None:
    """The order of intake does not matter."""
    put_pending(con, id="job-1", available_at=NOW + 9)
    put_leased(con, id="job-2", lease_until=NOW + 4)
    put_pending(con, id="job-3", available_at=NOW + 7)

    assert jobs.next_due(con) == NOW + 4


@pytest.mark.parametrize(
    "columns",
    [
        {"available_at": NOW},
        {"deadline": NOW},
        {"attempts": 3, "available_at": NOW},
        {"available_at": NOW, "deadline": DEADLINE},
    ],
)
def test_next_due_agrees_with_claim(con: sqlite3.Connection, columns: dict[str, int]) -> None:
    """A claim changes something at the instant due, and nothing a millisecond before."""
    put_pending(con, **columns)
    due_ms = jobs.next_due(con)
    assert due_ms is not None
    before = con.total_changes

    if due_ms:
        jobs.claim(con, "worker-a", due_ms - 1)
        assert con.total_changes == before

    jobs.claim(con, "worker-a", due_ms)
    assert con.total_changes > before


def test_next_due_takes_no_lock(con: sqlite3.Connection, queue_path: Path) -> None:
    """An idle worker waits for nobody and writes nothing."""
    put_pending(con)

    with writing(queue_path), unchanged(con, queue_path):
        assert jobs.next_due(con) == NOW


def test_next_due_that_is_interrupted(con: sqlite3.Connection):
    """Only a missing tree makes it read all jobs; any other error comes out."""
    con.set_progress_handler(lambda: 1, 1)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        jobs.next_due(con)
