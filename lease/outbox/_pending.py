"""List what has not taken effect yet, without a look at what has."""

import sqlite3
from collections.abc import Iterator

from lease.db.statements import statement
from lease.outbox import checks
from lease.outbox.model import Record

OUTBOX_PENDING = statement("outbox_pending")

_ALL = -1


def pending(con: sqlite3.Connection, *, limit: int | None = None) -> list[Record]:
    """Return the pending records in the order of recording.

    Args:
        con: a connection, in a transaction or not.
        limit: most records to return, from 1; None for all.

    Raises:
        ValueError: `limit` is not of its exact type or out of range.

    Hooks: none.
    """
    max_rows = _ALL if limit is None else checks.rows("limit", limit)
    records, _last_seq = page(con, None, max_rows)
    return records


def pages(con: sqlite3.Connection, max_rows: int) -> Iterator[list[Record]]:
    """Yield every pending record once, page by page; what becomes pending meanwhile as well."""
    after_seq = None
    while True:
        records, after_seq = page(con, after_seq, max_rows)
        if not records:
            return
        yield records


def page(
    con: sqlite3.Connection, after_seq: int | None, max_rows: int
) -> tuple[list[Record], int | None]:
    """Return the pending records after `after_seq`, and the seq of the last of them."""
    rows = OUTBOX_PENDING.many(con, after_seq=after_seq, max_rows=max_rows)
    records = [
        Record(id=record_id, event_type=event_type, payload_json=payload_json)
        for _seq, record_id, event_type, payload_json in rows
    ]
    return records, rows[-1][0] if rows else after_seq
