"""The loop that keeps an accelerator supplied from the outbox."""

import logging
import sqlite3

from lease.checks import integer
from lease.clock import wall_ms
from lease.db.locked import is_locked
from lease.db.statements import statement
from lease.errors import AcceleratorError
from lease.model import Clock
from lease.outbox import checks
from lease.outbox._dispatch import dispatch
from lease.outbox._stop import Stopping
from lease.outbox._time import iso
from lease.outbox.accelerator import Accelerator
from lease.outbox.model import Record

OUTBOX_NEW = statement("outbox_new")
OUTBOX_OVERDUE = statement("outbox_overdue")

_DAY_MS = 86_400_000
# A server that is away is asked again after 2, 4, ... and at last every 32 polls.
_MAX_DOUBLINGS = 5

_log = logging.getLogger("lease.outbox")


def relay(
    con: sqlite3.Connection,
    accelerator: Accelerator,
    stop: Stopping,
    *,
    redispatch_after_ms: int = 30_000,
    poll_ms: int = 200,
    max_rows: int = 100,
    clock: Clock = wall_ms,
) -> int:
    """Dispatch what is new and redispatch what has been pending for too long, until told to stop.

    A server that is away, and a database that is locked, are reported to the logger
    `lease.outbox` and waited for; the records are safe meanwhile. An idle round only reads.

    Args:
        con: a connection with no transaction open, on the database that holds the outbox.
        accelerator: the transient queue.
        stop: a `Stop`, or a `threading.Event` where no signal handler sets it; the round in hand
            is ended first.
        redispatch_after_ms: how long after its last push a pending record is pushed again,
            milliseconds from 1. Longer than effects usually take, or there are duplicates.
        poll_ms: wait between two looks at an outbox with nothing to dispatch, milliseconds from 1.
        max_rows: most records a round, from 1.
        clock: returns the present, milliseconds since 1970.

    Returns:
        How many pushes were acknowledged.

    Raises:
        ValueError: an argument or a reading of the clock is unusable.
        sqlite3.Error: the database failed in another way than being locked.

    Hooks: none.
    """
    integer("redispatch_after_ms", redispatch_after_ms, 1, _DAY_MS)
    integer("poll_ms", poll_ms, 1, _DAY_MS)
    checks.rows("max_rows", max_rows)
    total = failures = 0
    while not stop.is_set():
        pushed = 0
        try:
            records = due(con, clock(), redispatch_after_ms, max_rows)
            pushed = dispatch(con, accelerator, records, clock=clock)
            failures = 0
        except (AcceleratorError, sqlite3.OperationalError) as error:
            if isinstance(error, sqlite3.OperationalError) and not is_locked(error):
                raise
            if not failures:
                _log.warning("%s; the records stay pending and are tried again", error)
            failures += 1
        total += pushed
        if pushed < max_rows:
            stop.wait(poll_ms * 2 ** min(failures, _MAX_DOUBLINGS) / 1000)
    return total


def due(
    con: sqlite3.Connection, now_ms: int, redispatch_after_ms: int, max_rows: int
) -> list[Record]:
    """Return the pending records to push now: the new ones, then those pushed too long ago."""
    before = iso("clock()", max(0, integer("clock()", now_ms, 0, 2**62) - redispatch_after_ms))
    rows = OUTBOX_NEW.many(con, max_rows=max_rows)
    rows += OUTBOX_OVERDUE.many(con, before=before, max_rows=max_rows - len(rows))
    return [
        Record(id=record_id, event_type=event_type, payload_json=payload_json)
        for record_id, event_type, payload_json in rows
    ]
