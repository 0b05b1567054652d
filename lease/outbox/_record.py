"""Record an event in the transaction that makes it true."""

import sqlite3
from contextlib import nullcontext
from uuid import uuid4

from lease import checks, wire
from lease.clock import wall_ms
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import Conflict
from lease.model import Clock, Fault
from lease.outbox._find import find
from lease.outbox._time import iso
from lease.outbox.model import Record

OUTBOX_RECORD = statement("outbox_record")


def record(
    con: sqlite3.Connection,
    event_type: str,
    payload: object,
    *,
    id: str | None = None,  # noqa: A002  (the column's name)
    clock: Clock = wall_ms,
    fault: Fault | None = None,
) -> Record:
    """Record an event, once however often it is recorded under one id.

    Inside an open transaction it neither begins nor commits: the event becomes true with the
    rows that it tells of, or not at all. With none open it commits in one of its own, so begin
    before the first of those rows.

    Args:
        con: the application's connection.
        event_type: what happened, 1-128 ASCII letters, digits and `._:/-`.
        payload: what a JSON document can hold, at most 1 MiB; never changed.
        id: identifier of the event, which also becomes that of its job; None for a new one.
        clock: returns the present, milliseconds since 1970; the time of recording.
        fault: called at each commit boundary; None for never.

    Returns:
        The record. For an id that is recorded with the same type and payload, that one, which
        stays as it is.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.
        Conflict: the id is recorded with another type or payload; nothing was changed.

    Hooks: `after-record` once the row is written, `after-commit` where the transaction was its
    own; neither for an id that is recorded.
    """
    wanted = Record(
        id=uuid4().hex if id is None else checks.identifier("id", id),
        event_type=checks.event_type(event_type),
        payload_json=wire.canonical(payload),
    )
    created_at = iso("clock()", clock())
    borrowed = con.in_transaction
    with nullcontext() if borrowed else write_transaction(con):
        found = find(con, wanted["id"])
        if found is None:
            OUTBOX_RECORD.none(con, **wanted, created_at=created_at)
            if fault is not None:
                fault("after-record")
    if found is None:
        if fault is not None and not borrowed:
            fault("after-commit")
        return wanted
    recorded, _state = found
    if recorded == wanted:
        return recorded
    raise Conflict(f"record {wanted['id']} holds another type or payload; use another id")
