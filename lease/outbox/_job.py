"""The job that delivers a record: one a record, under the record's id."""

import sqlite3
from typing import NamedTuple

from lease.db.statements import statement
from lease.model import Event
from lease.outbox.model import Record

OUTBOX_JOB = statement("outbox_job")

_QTY = 1


class Job(NamedTuple):
    """What became of a job; `is_ours` tells it from another with the same id."""

    is_ours: bool
    status: str
    reason: str | None


def event_of(record: Record) -> Event:
    """Return what is enqueued for a record; its content stays in the outbox."""
    return Event(id=record["id"], qty=_QTY)


def job_of(queue: sqlite3.Connection, record_id: str) -> Job | None:
    """Return the job of a record, or None if there is none yet."""
    found = OUTBOX_JOB.optional(queue, id=record_id)
    if found is None:
        return None
    qty, status, reason = found
    return Job(qty == _QTY, status, reason)
