"""Record what several sends came to, in one transaction."""

import sqlite3
from collections.abc import Sequence

from lease import checks
from lease.db.transaction import write_transaction
from lease.jobs._settle import NewStatus, settle
from lease.limits import WIDE, Limits
from lease.model import Fault, Outcome, Ticket


def finish_many(
    con: sqlite3.Connection,
    results: Sequence[tuple[Ticket, Outcome, int]],
    now_ms: int,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> list[NewStatus]:
    """Settle claimed jobs, as a call of `finish` for each result in order would.

    A stale ticket among them holds up no other.

    Args:
        con: a connection with no transaction open.
        results: a list or tuple of up to 10000 tuples of a ticket, an outcome and a delay in
            milliseconds, each as for `finish`; never changed here.
        now_ms: the present, milliseconds, of all of them.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        For each result in order the job's new status, or False for a stale ticket, which changes
        nothing; a ticket that comes twice is stale the second time.

    Raises:
        ValueError: an argument is not of its exact type or out of range; the message says which
            result, and none was settled.

    Hooks: `after-finish` before COMMIT, `after-commit` after it, once each; neither when every
    ticket is stale.
    """
    checked = checks.results(results, limits)
    checks.now(now_ms, limits)
    with write_transaction(con):
        statuses = settle(con, checked, now_ms)
        if any(statuses) and fault is not None:
            fault("after-finish")
    if any(statuses) and fault is not None:
        fault("after-commit")
    return statuses
