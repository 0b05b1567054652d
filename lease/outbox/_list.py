"""List pending records for a person, with what became of their jobs."""

import sqlite3
from typing import TypedDict

from lease import checks
from lease.db.statements import statement
from lease.outbox._job import job_of

OUTBOX_LIST = statement("outbox_list")

_LARGEST_PAGE = 10_000


class Pending(TypedDict):
    """A pending record; `job` is its job's state, with the reason of a dead one in `reason`."""

    seq: int
    id: str
    event_type: str
    created_at: str
    dispatch_count: int
    dispatched_at: str | None
    job: str | None
    reason: str | None


def list_pending(
    con: sqlite3.Connection,
    queue: sqlite3.Connection | None = None,
    *,
    after_seq: int | None = None,
    max_rows: int = 100,
) -> list[Pending]:
    """Return a page of pending records in the order of recording.

    Args:
        con: a connection to the database that holds the outbox; only read from.
        queue: a connection to the database that holds the jobs, which may be `con`; only read
            from. None leaves `job` and `reason` empty.
        after_seq: the `seq` that ended the page before, None for the first page.
        max_rows: size of the page, 1-10000.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: none.
    """
    checks.seq("after_seq", after_seq)
    checks.integer("max_rows", max_rows, 1, _LARGEST_PAGE)
    rows = OUTBOX_LIST.many(con, after_seq=after_seq, max_rows=max_rows)
    return [_pending(queue, *row) for row in rows]


def _pending(
    queue: sqlite3.Connection | None,
    seq: int,
    record_id: str,
    event_type: str,
    created_at: str,
    dispatch_count: int,
    dispatched_at: str | None,
) -> Pending:
    job = None if queue is None else job_of(queue, record_id)
    return Pending(
        seq=seq,
        id=record_id,
        event_type=event_type,
        created_at=created_at,
        dispatch_count=dispatch_count,
        dispatched_at=dispatched_at,
        job=job.status if job else None,
        reason=job.reason if job else None,
    )
