"""Record what a send came to, unless the lease has moved on."""

import sqlite3
from collections.abc import Callable
from typing import Literal

from lease import checks
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.limits import WIDE, Limits
from lease.model import Fault, Outcome, Ticket

FINISH_SETTLE = statement("finish_settle")


def finish(
    con: sqlite3.Connection,
    ticket: Ticket,
    outcome: Outcome,
    now_ms: int,
    delay_ms: int = 0,
    fault: Fault | None = None,
    *,
    effect: Callable[[str], object] | None = None,
    limits: Limits = WIDE,
) -> str | Literal[False]:
    """Settle a claimed job for the holder of its current ticket.

    Args:
        con: a connection with no transaction open.
        ticket: what `claim` returned, unchanged; never changed here.
        outcome: `ok` makes the job done, `permanent` dead, `retry` pending again, or dead
            where the attempts or the time to live do not reach for another try.
        now_ms: the present, milliseconds.
        delay_ms: wait before the next attempt, milliseconds from 0.
        fault: called at each commit boundary; None for never.
        effect: called with the new status inside the transaction, unless the ticket is stale;
            what it writes on the connection commits with the status, and what it raises takes
            both back. None for none.
        limits: the upper bounds of the numbers.

    Returns:
        The job's new status, or False for a stale ticket, which changes nothing: the lease or
        the deadline has ended, or any part of the ticket is no longer the job's.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: `after-finish` before COMMIT, `after-commit` after it; neither when False is returned.

    Source: contract, step 5.
    """
    marker = checks.ticket(ticket, limits)
    checks.outcome(outcome)
    checks.now(now_ms, limits)
    checks.integer("delay_ms", delay_ms, 0, limits.max_delay_ms)
    with write_transaction(con):
        settled = FINISH_SETTLE.optional(
            con, **marker, outcome=outcome, now_ms=now_ms, delay_ms=delay_ms
        )
        if settled and effect is not None:
            effect(settled[0])
        if settled and fault is not None:
            fault("after-finish")
    if settled is None:
        return False
    if fault is not None:
        fault("after-commit")
    return str(settled[0])
