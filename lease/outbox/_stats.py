"""Count what is in the outbox."""

import sqlite3
from typing import TypedDict

from lease.db.statements import statement

OUTBOX_STATS = statement("outbox_stats")


class Stats(TypedDict):
    """How many records are in each state; `dispatched` of the pending ones were pushed."""

    pending: int
    dispatched: int
    oldest_pending_at: str | None
    processed: int


def stats(con: sqlite3.Connection) -> Stats:
    """Return the numbers of records, and the time at which the oldest pending was recorded."""
    pending, dispatched, oldest_pending_at, processed = OUTBOX_STATS.one(con)
    return Stats(
        pending=pending,
        dispatched=dispatched,
        oldest_pending_at=oldest_pending_at,
        processed=processed,
    )
