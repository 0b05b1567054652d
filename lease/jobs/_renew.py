"""Keep a job for longer than its lease, while its send still runs."""

import sqlite3

from lease import checks
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.limits import WIDE, Limits
from lease.model import Fault, Ticket

RENEW_FIND = statement("renew_find")
RENEW_EXTEND = statement("renew_extend")


def renew(
    con: sqlite3.Connection,
    ticket: Ticket,
    now_ms: int,
    lease_ms: int,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> Ticket | None:
    """Extend the lease of a claimed job for the holder of its current ticket.

    The new lease ends `lease_ms` from now, at the job's deadline at the latest, and never
    earlier than the old one: where that leaves its end as it is, nothing is written and the
    ticket stays good. Otherwise the old ticket is refused from then on.

    Args:
        con: a connection with no transaction open.
        ticket: what `claim` or the last `renew` returned, unchanged; never changed here.
        now_ms: the present, milliseconds.
        lease_ms: longest lease from now, milliseconds from 1; the job's deadline clips it.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        The ticket to present from now on, with the same token and attempt; a new dict also where
        the lease end did not move. None for a stale ticket, which changes nothing: the lease or
        the deadline has ended, or any part of the ticket is no longer the job's.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: `after-renew` before COMMIT, `after-commit` after it; neither where nothing is written.
    """
    marker = checks.ticket(ticket, limits)
    checks.now(now_ms, limits)
    checks.integer("lease_ms", lease_ms, 1, limits.max_lease_ms)
    renewed = ticket.copy()
    with write_transaction(con):
        found = RENEW_FIND.optional(con, **marker, now_ms=now_ms, lease_ms=lease_ms)
        if found is not None:
            (renewed["lease_until"],) = found
        extended = renewed["lease_until"] != marker["lease_until"]
        if extended:
            RENEW_EXTEND.count(con, id=marker["id"], new_lease_until=renewed["lease_until"])
            if fault is not None:
                fault("after-renew")
    if extended and fault is not None:
        fault("after-commit")
    return renewed if found is not None else None
