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
from lease.outbox._time import MAX_MS, iso
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
    max_queue: int = 10_000,
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
        max_queue: length of the queue, from 1, above which overdue records are held back for
            `redispatch_after_ms`: nobody pops, and more copies would only fill the server.
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
    checks.rows("max_queue", max_queue)
    gauge = _Gauge(accelerator)
    failures = held_until_ms = 0
    while not stop.is_set():
        before = gauge.acknowledged
        gauge.length = 0
        try:
            now_ms = integer("clock()", clock(), 0, MAX_MS)
            dispatch(con, gauge, new(con, max_rows), clock=clock)
            room = max_rows - (gauge.acknowledged - before)
            late = overdue(con, now_ms - redispatch_after_ms, room)
            # The first copy tells how long the queue is.
            for part in (late[:1], late[1:]):
                if gauge.length > max_queue:
                    held_until_ms = now_ms + redispatch_after_ms
                if now_ms >= held_until_ms:
                    dispatch(con, gauge, part, clock=clock)
            failures = 0
        except (AcceleratorError, sqlite3.OperationalError) as error:
            if isinstance(error, sqlite3.OperationalError) and not is_locked(error):
                raise
            if not failures:
                _log.warning("%s; the records stay pending and are tried again", error)
            failures += 1
        if failures or gauge.acknowledged - before < max_rows:
            stop.wait(poll_ms * 2 ** min(failures, _MAX_DOUBLINGS) / 1000)
    return gauge.acknowledged


def new(con: sqlite3.Connection, max_rows: int) -> list[Record]:
    """Return the pending records that were never pushed, oldest first."""
    return [_record(*row) for row in OUTBOX_NEW.many(con, max_rows=max_rows)]


def overdue(con: sqlite3.Connection, before_ms: int, max_rows: int) -> list[Record]:
    """Return the pending records last pushed at or before an instant, longest first."""
    before = iso("before_ms", max(0, before_ms))
    return [_record(*row) for row in OUTBOX_OVERDUE.many(con, before=before, max_rows=max_rows)]


def _record(record_id: str, event_type: str, payload_json: str) -> Record:
    return Record(id=record_id, event_type=event_type, payload_json=payload_json)


class _Gauge:
    """Passes pushes on, counts those acknowledged, and keeps the length that the last one told."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self.acknowledged = self.length = 0

    def push(self, payload: bytes) -> int:
        """Push one item."""
        self.length = self._accelerator.push(payload)
        self.acknowledged += 1
        return self.length
