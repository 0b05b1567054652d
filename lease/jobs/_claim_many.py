"""Hand several claimable jobs to one worker at once."""

import sqlite3

from lease import checks
from lease.db.transaction import write_transaction
from lease.jobs._take import take
from lease.limits import MAX_BATCH, WIDE, Limits
from lease.model import Fault, Ticket


def claim_many(
    con: sqlite3.Connection,
    owner: str,
    now_ms: int,
    max_jobs: int,
    lease_ms: int = 1000,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> list[Ticket]:
    """Lease up to so many jobs in one transaction, as that many calls of `claim` would.

    Args:
        con: a connection with no transaction open.
        owner: identifier of the worker.
        now_ms: the present, milliseconds.
        max_jobs: how many to lease at most, 1-10000.
        lease_ms: longest lease of each, milliseconds from 1; a job's deadline clips it.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        The tickets that `finish` asks for, oldest job first; fewer than `max_jobs` only where
        no more jobs are claimable.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: `after-claim` before COMMIT, `after-commit` after it, once each; neither when no job
    was leased.
    """
    checks.identifier("owner", owner)
    checks.now(now_ms, limits)
    checks.integer("max_jobs", max_jobs, 1, MAX_BATCH)
    checks.integer("lease_ms", lease_ms, 1, limits.max_lease_ms)
    with write_transaction(con):
        tickets = take(con, owner, now_ms, lease_ms, max_jobs)
        if tickets and fault is not None:
            fault("after-claim")
    if tickets and fault is not None:
        fault("after-commit")
    return tickets
