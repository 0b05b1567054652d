"""Push copies of records to an accelerator, and count what it acknowledged."""

import sqlite3
from collections.abc import Iterable

from lease.clock import wall_ms
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import AcceleratorError
from lease.model import Clock, Fault
from lease.outbox import checks
from lease.outbox._hint import encode
from lease.outbox._pending import pages
from lease.outbox._time import iso
from lease.outbox.accelerator import Pushable
from lease.outbox.model import Record

OUTBOX_DISPATCHED = statement("outbox_dispatched")

# One commit counts this many pushes: few enough that a crash forgets little.
PAGE = 100


def dispatch(
    con: sqlite3.Connection,
    accelerator: Pushable,
    records: Iterable[Record],
    *,
    clock: Clock = wall_ms,
    fault: Fault | None = None,
) -> int:
    """Push a copy of each record, and add to its `dispatch_count` once it is acknowledged.

    Pushing one record more than once is harmless. A process that dies between a push and its
    count leaves the count too low, which is harmless as well.

    Args:
        con: a connection with no transaction open, on the database that holds the outbox.
        accelerator: the transient queue.
        records: what `record` or `pending` returned.
        clock: returns the present, milliseconds since 1970; the time of dispatch.
        fault: called at each commit boundary; None for never.

    Returns:
        How many pushes were acknowledged: as many as there are records.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was pushed.
        sqlite3.ProgrammingError: a transaction is open; nothing was pushed.
        AcceleratorError: a push failed. Those acknowledged before it are counted; that one
            and the rest are not, and every record stays as it was.

    Hooks: `after-push` after each acknowledgement, `after-count` before COMMIT, `after-commit`
    after it; these for every 100 records.
    """
    if con.in_transaction:
        raise sqlite3.ProgrammingError(
            "dispatch waits for a server and must not hold a transaction; commit or roll back first"
        )
    checked = [checks.record(each) for each in records]
    for start in range(0, len(checked), PAGE):
        acknowledged: list[str] = []
        try:
            for each in checked[start : start + PAGE]:
                accelerator.push(encode(each))
                acknowledged.append(each["id"])
                if fault is not None:
                    fault("after-push")
        except AcceleratorError:
            count_pushes(con, acknowledged, clock, fault)
            raise
        count_pushes(con, acknowledged, clock, fault)
    return len(checked)


def redispatch(
    con: sqlite3.Connection,
    accelerator: Pushable,
    *,
    clock: Clock = wall_ms,
    fault: Fault | None = None,
) -> int:
    """Push a copy of every record that is still pending: the recovery from whatever was lost.

    Args:
        con, accelerator, clock, fault: as for `dispatch`.

    Returns:
        How many pushes were acknowledged.

    Raises:
        Exception: what `dispatch` raises.

    Hooks: those of `dispatch`.
    """
    return sum(
        dispatch(con, accelerator, records, clock=clock, fault=fault)
        for records in pages(con, PAGE)
    )


def count_pushes(
    con: sqlite3.Connection, acknowledged: list[str], clock: Clock, fault: Fault | None
) -> None:
    """Count one push for each id, all in one transaction; without any, do nothing."""
    if not acknowledged:
        return
    dispatched_at = iso("clock()", clock())
    with write_transaction(con):
        for record_id in acknowledged:
            OUTBOX_DISPATCHED.count(con, id=record_id, dispatched_at=dispatched_at)
        if fault is not None:
            fault("after-count")
    if fault is not None:
        fault("after-commit")
