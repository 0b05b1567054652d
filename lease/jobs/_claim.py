"""Hand the oldest claimable job to one worker, under a lease and a new token."""

import sqlite3

from lease import checks
from lease.db.transaction import write_transaction
from lease.jobs._take import take
from lease.limits import WIDE, Limits
from lease.model import Fault, Ticket


def claim(
    con: sqlite3.Connection,
    owner: str,
    now_ms: int,
    lease_ms: int = 1000,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> Ticket | None:
    """Lease one job, after burying those that have run out of time or attempts.

    The two happen in one write transaction; the burying is committed even where nothing is
    left to lease.

    Args:
        con: a connection with no transaction open.
        owner: identifier of the worker.
        now_ms: the present, milliseconds.
        lease_ms: longest lease, milliseconds from 1; the job's deadline clips it.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        The ticket that `finish` asks for, or None if no job is claimable.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: `after-claim` before COMMIT, `after-commit` after it; neither when None is returned.

    Source: contract, step 4.
    """
    checks.identifier("owner", owner)
    checks.now(now_ms, limits)
    checks.integer("lease_ms", lease_ms, 1, limits.max_lease_ms)
    with write_transaction(con):
        tickets = take(con, owner, now_ms, lease_ms, 1)
        if tickets and fault is not None:
            fault("after-claim")
    if not tickets:
        return None
    if fault is not None:
        fault("after-commit")
    return tickets[0]
