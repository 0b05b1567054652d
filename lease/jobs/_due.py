"""Tell when a queue next needs a claim, without taking the write lock."""

import sqlite3

from lease.db.statements import statement

DUE_NEXT = statement("due_next")


def next_due(con: sqlite3.Connection) -> int | None:
    """Return the earliest instant at which a claim would change something.

    From that instant on a claim leases a job or buries one; before it, it finds nothing.

    Args:
        con: a connection to a queue; only read from.

    Returns:
        Milliseconds on the queue's time base, in the past where something is overdue, or None
        if no job is pending or leased.

    Hooks: none.
    """
    (due_ms,) = DUE_NEXT.one(con)
    return None if due_ms is None else int(due_ms)
