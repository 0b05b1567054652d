"""Tell when a queue next needs a claim, without taking the write lock."""

import sqlite3

from lease.db.migrations import is_about_sql
from lease.db.statements import statement

DUE_NEXT = statement("due_next")
DUE_BARE_NEXT = statement("due_bare_next")


def next_due(con: sqlite3.Connection) -> int | None:
    """Return the earliest instant at which a claim would change something.

    From that instant on a claim leases a job or buries one; before it, it finds nothing.
    A file that `open_queue` has never seen, or whose tree was rolled back, is read in full.

    Args:
        con: a connection to a queue; only read from.

    Returns:
        Milliseconds on the queue's time base, in the past where something is overdue, or None
        if no job is pending or leased, apart from those that never can be due.

    Hooks: none.
    """
    try:
        (due_ms,) = DUE_NEXT.one(con)
    except sqlite3.OperationalError as error:
        if not is_about_sql(error):
            raise
        (due_ms,) = DUE_BARE_NEXT.one(con)
    # A text, which somebody's own SQL has put in place of an instant, never comes.
    return int(due_ms) if type(due_ms) in (int, float) else None
