"""Read one record, which is the truth about its event."""

import sqlite3

from lease.db.statements import statement
from lease.outbox.model import Record

OUTBOX_FIND = statement("outbox_find")


def find(con: sqlite3.Connection, record_id: str) -> tuple[Record, str] | None:
    """Return the record of that id and its state, `pending` or `processed`; None if unknown."""
    found = OUTBOX_FIND.optional(con, id=record_id)
    if found is None:
        return None
    event_type, payload_json, state = found
    return Record(id=record_id, event_type=event_type, payload_json=payload_json), state
