"""Take in a job once, however often it is sent in."""

import sqlite3

from lease import checks
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import Conflict
from lease.limits import WIDE, Limits
from lease.model import Event

ENQUEUE_FIND = statement("enqueue_find")
ENQUEUE_INSERT = statement("enqueue_insert")


def enqueue(
    con: sqlite3.Connection,
    event: Event,
    now_ms: int,
    ttl_ms: int,
    max_attempts: int = 3,
    *,
    limits: Limits = WIDE,
) -> bool:
    """Record a new job, pending until it is claimed or its time to live has passed.

    Args:
        con: a connection with no transaction open.
        event: exactly `id` and `qty`; never changed.
        now_ms: the present, milliseconds.
        ttl_ms: time to live, milliseconds from 1.
        max_attempts: how often the job may be claimed, from 1.
        limits: the upper bounds of the numbers.

    Returns:
        True for a new job. False if the id is recorded with the same quantity; that job keeps
        its budget and its deadline.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
        Conflict: the id is recorded with another quantity.

    Hooks: none.

    Source: contract, step 3.
    """
    job_id, qty = checks.event(event)
    checks.now(now_ms, limits)
    checks.integer("ttl_ms", ttl_ms, 1, limits.max_ttl_ms)
    checks.integer("max_attempts", max_attempts, 1, limits.max_attempts)
    with write_transaction(con):
        found = ENQUEUE_FIND.optional(con, id=job_id)
        if found is None:
            ENQUEUE_INSERT.none(
                con, id=job_id, qty=qty, max_attempts=max_attempts, now_ms=now_ms, ttl_ms=ttl_ms
            )
    if found is None:
        return True
    if found == (qty,):
        return False
    raise Conflict(f"job {job_id} is recorded with qty {found[0]}, not {qty}; use another id")
