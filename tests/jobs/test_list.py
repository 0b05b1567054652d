"""list_jobs: pages in the order of intake, of all jobs or of one state."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease import jobs
from tests.support.queue import all_jobs, put_dead, put_leased, put_pending, unchanged
from tests.support.refused import SEQS, Str, integers, table

GOOD: dict[str, Any] = {"status": None, "reason": None, "after_seq": 0, "max_jobs": 100}


def test_list_jobs_returns_whole_rows_in_order_of_intake(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A listed job is its row, under the names of its columns."""
    put_leased(con, id="job-b")
    put_pending(con, id="job-a")
    put_dead(con, id="job-c")

    with unchanged(con, queue_path):
        listed = jobs.list_jobs(con)

    assert listed == all_jobs(con)


def test_list_jobs_of_one_state(con: sqlite3.Connection) -> None:
    """Each state lists its own jobs alone."""
    put_pending(con, id="pending")
    put_leased(con, id="leased")
    put_dead(con, id="done", status="done")
    put_dead(con, id="dead")

    for status in ("pending", "leased", "done", "dead"):
        assert [job["id"] for job in jobs.list_jobs(con, status)] == [status]


def test_list_jobs_of_one_reason(con: sqlite3.Connection) -> None:
    """Each reason lists the jobs that are dead for it, and no other state has any."""
    reasons = ("deadline", "exhausted", "permanent")
    for reason in reasons:
        put_dead(con, id=reason, reason=reason)
    put_dead(con, id="by-hand", reason="permanent", status="done")
    put_pending(con, id="again", reason="retry")

    for reason in reasons:
        assert [job["id"] for job in jobs.list_jobs(con, reason=reason)] == [reason]
        assert [job["id"] for job in jobs.list_jobs(con, "dead", reason=reason)] == [reason]
        assert jobs.list_jobs(con, "pending", reason=reason) == []
    assert [job["id"] for job in jobs.list_jobs(con, "done", reason="permanent")] == ["by-hand"]


def test_list_jobs_of_one_reason_goes_on_after_a_page(con: sqlite3.Connection) -> None:
    """Jobs that died of something else are passed over, and fill no page."""
    for number in range(9):
        put_dead(con, id=f"job-{number}", reason=("permanent", "deadline")[number % 2])

    first = jobs.list_jobs(con, reason="permanent", max_jobs=3)
    second = jobs.list_jobs(con, reason="permanent", after_seq=first[-1]["seq"], max_jobs=3)

    assert [job["seq"] for job in first + second] == [1, 3, 5, 7, 9]
    assert [len(first), len(second)] == [3, 2]


@pytest.mark.parametrize("status", [None, "pending"])
def test_list_jobs_goes_on_after_a_page(con: sqlite3.Connection, status: Any) -> None:
    """A page ends at its size, and the next begins after its last seq."""
    for number in range(5):
        put_pending(con, id=f"job-{number}")

    first = jobs.list_jobs(con, status, max_jobs=3)
    second = jobs.list_jobs(con, status, after_seq=first[-1]["seq"], max_jobs=3)

    assert [job["id"] for job in first] == ["job-0", "job-1", "job-2"]
    assert [job["id"] for job in second] == ["job-3", "job-4"]
    assert jobs.list_jobs(con, status, after_seq=second[-1]["seq"]) == []


@pytest.mark.parametrize(
    "how", [{}, {"status": "dead"}, {"reason": "permanent"}], ids=["all", "status", "reason"]
)
def test_list_jobs_begins_with_the_smallest_seq(con: sqlite3.Connection, how: Any) -> None:
    """An outsider may have chosen any integer, and each is listed once."""
    seqs = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]
    for seq in seqs:
        put_dead(con, id=f"job{seq}", seq=seq, reason="permanent")

    assert [job["seq"] for job in jobs.list_jobs(con, **how)] == seqs
    walked: list[int] = []
    while page := jobs.list_jobs(con, **how, after_seq=(walked or [None])[-1], max_jobs=2):
        walked += [job["seq"] for job in page]
    assert walked == seqs


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *table(after_seq=SEQS, max_jobs=integers(1, 10_000)),
        ("status", ""),
        ("status", "DONE"),
        ("status", "done\n"),
        ("status", Str("done")),
        ("status", 1),
        ("reason", ""),
        ("reason", "retry"),
        ("reason", "Permanent"),
        ("reason", "permanent\n"),
        ("reason", Str("permanent")),
        ("reason", 1),
    ],
)
def test_list_jobs_refuses(con: sqlite3.Connection, argument: str, value: object) -> None:
    """Arguments are exact, so that no page is empty by mistake."""
    with pytest.raises(ValueError, match=f"^{argument} must be "):
        jobs.list_jobs(con, **(GOOD | {argument: value}))
