"""The job that delivers a record: one a record, under the record's id."""

import sqlite3
from typing import NamedTuple

from lease.db.statements import statement
from lease.model import Event
from lease.outbox.model import Record

OUTBOX_JOB = statement("outbox_job")

_QTY = 1


class Job(NamedTuple):
    """What became of a job; `is_ours` tells it from another with the same id.

    Args:
        is_ours: whether it has the quantity of a record's job.
        status: the job's state.
        reason: why it is dead or came back, or None.
        since_ms: when a job that is done became so, milliseconds.
        token: the number of its claims.
        attempts: how many of them since it was enqueued or redriven.
    """

    is_ours: bool
    status: str
    reason: str | None
    since_ms: int
    token: int
    attempts: int


def event_of(record: Record) -> Event:
    """Return what is enqueued for a record; its content stays in the outbox."""
    return Event(id=record["id"], qty=_QTY)


def job_of(queue: sqlite3.Connection, record_id: str) -> Job | None:
    """Return the job of a record, or None if there is none yet."""
    found = OUTBOX_JOB.optional(queue, id=record_id)
    if found is None:
        return None
    qty, *rest = found
    return Job(qty == _QTY, *rest)
