"""Record what was sent and fetch what is next, at the price of one commit."""

import sqlite3
from collections.abc import Sequence

from lease import checks
from lease.db.transaction import write_transaction
from lease.jobs._settle import NewStatus, settle
from lease.jobs._take import take
from lease.limits import MAX_BATCH, WIDE, Limits
from lease.model import Fault, Outcome, Ticket


def finish_and_claim(
    con: sqlite3.Connection,
    results: Sequence[tuple[Ticket, Outcome, int]],
    owner: str,
    now_ms: int,
    max_jobs: int,
    lease_ms: int = 1000,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> tuple[list[NewStatus], list[Ticket]]:
    """Do what `finish_many` and then `claim_many` do at one instant, in one transaction.

    A busy worker that does so pays half the syncs.

    Args:
        con: a connection with no transaction open.
        results: as for `finish_many`; may be empty.
        owner: identifier of the worker.
        now_ms: the present, milliseconds, of all that is finished and claimed.
        max_jobs: how many to lease at most, 1-10000.
        lease_ms: longest lease of each, milliseconds from 1; a job's deadline clips it.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        What `finish_many` returns, and what `claim_many` returns.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.

    Hooks: `after-finish` if a job was settled, then `after-claim` if one was leased, both before
    COMMIT; `after-commit` after it if either was.
    """
    checked = checks.results(results, limits)
    checks.identifier("owner", owner)
    checks.now(now_ms, limits)
    checks.integer("max_jobs", max_jobs, 1, MAX_BATCH)
    checks.integer("lease_ms", lease_ms, 1, limits.max_lease_ms)
    with write_transaction(con):
        statuses = settle(con, checked, now_ms)
        settled = any(statuses)
        if settled and fault is not None:
            fault("after-finish")
        tickets = take(con, owner, now_ms, lease_ms, max_jobs)
        if tickets and fault is not None:
            fault("after-claim")
    if (settled or tickets) and fault is not None:
        fault("after-commit")
    return statuses, tickets
