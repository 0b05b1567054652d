"""The one transition of a record: from pending to processed, with the row that stands for it."""

import sqlite3

from lease.db.statements import statement
from lease.outbox.model import Record

OUTBOX_SETTLE = statement("outbox_settle")
OUTBOX_DELIVER = statement("outbox_deliver")


def settle(con: sqlite3.Connection, record: Record, processed_at: str) -> bool:
    """Make a record processed inside the caller's write transaction.

    Returns:
        False if the record is not pending; nothing was changed.
    """
    if not OUTBOX_SETTLE.count(con, id=record["id"], processed_at=processed_at):
        return False
    OUTBOX_DELIVER.none(
        con, outbox_id=record["id"], body_json=record["payload_json"], delivered_at=processed_at
    )
    return True
