"""Remove what took effect long ago, a bounded number at a time."""

import sqlite3

from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.model import Fault
from lease.outbox import checks
from lease.outbox._time import iso

OUTBOX_PRUNE_DELIVERIES = statement("outbox_prune_deliveries")
OUTBOX_PRUNE = statement("outbox_prune")


def prune(
    con: sqlite3.Connection, before: int, max_rows: int, *, fault: Fault | None = None
) -> int:
    """Remove the records processed longest ago, with their deliveries, in one transaction.

    Pending records are never touched. Call it again until it returns less than `max_rows`. An
    id that was removed is forgotten: recorded again it is a new event, which `deliver` will not
    send, since the queue remembers the job of that id.

    Args:
        con: a connection with no transaction open.
        before: records processed before this are removed, milliseconds since 1970.
        max_rows: most records to remove, from 1; the write lock is held for so long.
        fault: called at each commit boundary; None for never.

    Returns:
        How many records were removed.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.

    Hooks: `after-deliveries` and `after-prune` before COMMIT, `after-commit` after it; each only
    where something was removed.
    """
    limit = iso("before", before)
    checks.rows("max_rows", max_rows)
    with write_transaction(con):
        deliveries = OUTBOX_PRUNE_DELIVERIES.count(con, before=limit, max_rows=max_rows)
        if deliveries and fault is not None:
            fault("after-deliveries")
        removed = OUTBOX_PRUNE.count(con, before=limit, max_rows=max_rows)
        if removed and fault is not None:
            fault("after-prune")
    if removed and fault is not None:
        fault("after-commit")
    return removed
