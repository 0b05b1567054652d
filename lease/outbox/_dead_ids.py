"""Walk over the pending records whose jobs are dead, batch by batch."""

import sqlite3
from collections.abc import Iterator

from lease import checks
from lease.db.statements import statement
from lease.jobs import Reason
from lease.limits import MAX_BATCH
from lease.outbox._job import job_of
from lease.outbox._list import list_pending

OUTBOX_NEWEST = statement("outbox_newest")


def dead_ids(
    con: sqlite3.Connection,
    queue: sqlite3.Connection,
    reason: Reason | None = None,
    *,
    max_ids: int = 1000,
) -> Iterator[list[str]]:
    """Yield the ids of the records that wait for a redrive, a batch for `jobs.redrive_many`.

    They come in the order of recording, and each record is looked at once, when its batch is
    asked for, up to the newest one there is now; so whoever releases the jobs on the way meets
    none of them twice, and the walk ends. A dead job whose record is not pending has nothing left
    to send, and one that only bears a record's id is somebody else's: neither is among them.

    Args:
        con: a connection to the database that holds the outbox; only read from.
        queue: a connection to the one that holds the jobs, which may be `con`; only read from.
        reason: yield only records whose job is dead for this reason, None for any.
        max_ids: largest size of a batch, 1-10000.

    Yields:
        The ids of a batch; never none.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: none.
    """
    checks.reason(reason)
    checks.integer("max_ids", max_ids, 1, MAX_BATCH)
    newest = OUTBOX_NEWEST.optional(con)
    return _batches(con, queue, reason, newest[0], max_ids) if newest else iter(())


def _batches(
    con: sqlite3.Connection,
    queue: sqlite3.Connection,
    reason: Reason | None,
    last_seq: int,
    max_ids: int,
) -> Iterator[list[str]]:
    after_seq = None
    while after_seq is None or after_seq < last_seq:
        page = list_pending(con, after_seq=after_seq, max_rows=max_ids)
        records = [record["id"] for record in page if record["seq"] <= last_seq]
        # An id that no verb takes must not cost the others of its batch their release.
        usable = filter(checks.is_identifier, records)
        if ids := [each for each in usable if _is_dead(queue, each, reason)]:
            yield ids
        after_seq = page[-1]["seq"] if len(page) == max_ids else last_seq


def _is_dead(queue: sqlite3.Connection, record_id: str, reason: Reason | None) -> bool:
    job = job_of(queue, record_id)
    if job is None or not job.is_ours or job.status != "dead":
        return False
    return reason in (None, job.reason)
