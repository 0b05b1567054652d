"""Read one record, which is the truth about its event, and its effect."""

import sqlite3

from lease.db.statements import statement
from lease.outbox.model import Record

OUTBOX_FIND = statement("outbox_find")
OUTBOX_DELIVERED = statement("outbox_delivered")
OUTBOX_RECORDED_AT = statement("outbox_recorded_at")


def find(con: sqlite3.Connection, record_id: str) -> tuple[Record, str] | None:
    """Return the record of that id and its state, `pending` or `processed`; None if unknown."""
    found = OUTBOX_FIND.optional(con, id=record_id)
    if found is None:
        return None
    event_type, payload_json, state = found
    return Record(id=record_id, event_type=event_type, payload_json=payload_json), state


def recorded_at(con: sqlite3.Connection, record_id: str) -> str | None:
    """Return the instant of a pending record; None if there is none pending of that id."""
    found = OUTBOX_RECORDED_AT.optional(con, id=record_id)
    return None if found is None else str(found[0])


def delivered(con: sqlite3.Connection, record_id: str) -> str | None:
    """Return the payload that took effect under an id; None if none has."""
    found = OUTBOX_DELIVERED.optional(con, outbox_id=record_id)
    return None if found is None else str(found[0])
