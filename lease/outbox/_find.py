"""Read one record, which is the truth about its event, and its effect."""

import sqlite3

from lease.db.statements import statement
from lease.outbox.model import Record

OUTBOX_FIND = statement("outbox_find")
OUTBOX_DELIVERED = statement("outbox_delivered")


def find(con: sqlite3.Connection, record_id: str) -> tuple[Record, str] | None:
    """Return the record of that id and its state, `pending` or `processed`; None if unknown."""
    found = OUTBOX_FIND.optional(con, id=record_id)
    if found is None:
        return None
    event_type, payload_json, state = found
    return Record(id=record_id, event_type=event_type, payload_json=payload_json), state


def delivered(con: sqlite3.Connection, record_id: str) -> str | None:
    """Return the payload that took effect under an id; None if none has."""
    found = OUTBOX_DELIVERED.optional(con, outbox_id=record_id)
    return None if found is None else str(found[0])
