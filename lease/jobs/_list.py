"""Read the jobs of a queue a page at a time."""

import sqlite3
from typing import Literal, TypedDict

from lease import checks
from lease.db.statements import statement

LIST_ALL = statement("list_all")
LIST_STATUS = statement("list_status")
LIST_REASON = statement("list_reason")

Status = Literal["pending", "leased", "done", "dead"]
Reason = Literal["deadline", "exhausted", "permanent"]

_LARGEST_PAGE = 10_000


class Job(TypedDict):
    """A job's whole row; instants are milliseconds on the queue's time base."""

    seq: int
    id: str
    qty: int
    status: Status
    attempts: int
    max_attempts: int
    token: int
    available_at: int
    deadline: int
    owner: str | None
    lease_until: int | None
    reason: str | None


def list_jobs(
    con: sqlite3.Connection,
    status: Status | None = None,
    *,
    reason: Reason | None = None,
    after_seq: int | None = None,
    max_jobs: int = 100,
) -> list[Job]:
    """Return a page of jobs in the order of their intake.

    Each page goes on where the one before ended, so that all of them together read the queue
    once, however few of its jobs are listed.

    Args:
        con: a connection to a queue; only read from.
        status: the state to list, None for all.
        reason: list only jobs that are dead for this reason, None for any.
        after_seq: the `seq` that ended the page before, None for the first page.
        max_jobs: size of the page, 1-10000.

    Returns:
        The jobs; fewer than `max_jobs` of them only at the end of the list.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: none.
    """
    checks.seq("after_seq", after_seq)
    checks.integer("max_jobs", max_jobs, 1, _LARGEST_PAGE)
    checks.reason(reason)
    if status is not None:
        checks.status(status)
    page = {"after_seq": after_seq, "max_jobs": max_jobs}
    if reason is not None:
        rows = LIST_REASON.many(con, status=status or "dead", reason=reason, **page)
    elif status is not None:
        rows = LIST_STATUS.many(con, status=status, **page)
    else:
        rows = LIST_ALL.many(con, **page)
    return [_job(*row) for row in rows]


def _job(
    seq: int,
    job_id: str,
    qty: int,
    status: Status,
    attempts: int,
    max_attempts: int,
    token: int,
    available_at: int,
    deadline: int,
    owner: str | None,
    lease_until: int | None,
    reason: str | None,
) -> Job:
    return Job(
        seq=seq,
        id=job_id,
        qty=qty,
        status=status,
        attempts=attempts,
        max_attempts=max_attempts,
        token=token,
        available_at=available_at,
        deadline=deadline,
        owner=owner,
        lease_until=lease_until,
        reason=reason,
    )
