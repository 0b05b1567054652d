"""Walk over the dead jobs of a queue, batch by batch, to release them on the way."""

import sqlite3
from collections.abc import Iterator

from lease import checks
from lease.db.statements import statement
from lease.jobs._list import Reason
from lease.limits import MAX_BATCH

DEAD_IDS_NEWEST = statement("dead_ids_newest")
DEAD_IDS_PAGE = statement("dead_ids_page")


def dead_ids(
    con: sqlite3.Connection, reason: Reason | None = None, *, max_ids: int = 1000
) -> Iterator[list[str]]:
    """Yield the ids of the dead jobs in the order of their intake, a batch for `redrive_many`.

    Each batch is read when it is asked for, and every job is looked at once. So whoever releases
    the jobs on the way meets none of them twice, even if it dies again meanwhile, and the walk
    ends though new jobs come and die: it goes no further than the newest job there is now. No
    transaction is open between two batches. What bears an id that no verb takes, which only
    somebody's own SQL can have put there, is passed over.

    Args:
        con: a connection to a queue; only read from.
        reason: yield only jobs that are dead for this reason, None for any.
        max_ids: size of a batch, 1-10000.

    Yields:
        The ids of a batch; never none.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: none.
    """
    checks.reason(reason)
    checks.integer("max_ids", max_ids, 1, MAX_BATCH)
    newest = DEAD_IDS_NEWEST.optional(con)
    return _batches(con, reason, newest[0], max_ids) if newest else iter(())


def _batches(
    con: sqlite3.Connection, reason: Reason | None, last_seq: int, max_ids: int
) -> Iterator[list[str]]:
    after_seq = None
    while after_seq is None or after_seq < last_seq:
        page = DEAD_IDS_PAGE.many(
            con, reason=reason, after_seq=after_seq, last_seq=last_seq, max_ids=max_ids
        )
        # One id that no verb takes would cost the others of its batch their release.
        if ids := [job_id for _seq, job_id in page if checks.is_identifier(job_id)]:
            yield ids
        after_seq = page[-1][0] if len(page) == max_ids else last_seq
