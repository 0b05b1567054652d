"""Accept an outbox's event once: a type and a payload in place of a quantity."""

import sqlite3
from collections.abc import Callable

from lease import checks, wire
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import Conflict
from lease.inbox._accept import make
from lease.limits import WIDE, Limits
from lease.model import Fault, RecordedEvent

INBOX_EVENT_FIND = statement("inbox_event_find")
INBOX_EVENT_RECORD = statement("inbox_event_record")
INBOX_EVENT_REPEAT = statement("inbox_event_repeat")


#: Makes the application's effect of one event on the connection it is given, and leaves the
#: commit to `accept_event`.
EventEffect = Callable[[sqlite3.Connection, RecordedEvent], object]


def accept_event(
    con: sqlite3.Connection,
    event: RecordedEvent,
    now_ms: int,
    effect: EventEffect | None = None,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> bool:
    """Make the effect of an outbox's event unless an earlier delivery has made it.

    Args:
        con: a connection with no transaction open, on a file with the inbox's tables.
        event: exactly `id`, `event_type` and `payload`; never changed.
        now_ms: the present, milliseconds.
        effect: called inside the transaction with the connection and its own copy of the
            event; what it writes there commits with the row in `inbox_events`. It must not
            commit, roll back, use `with con:` or `executescript`. None leaves it at the row.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        True for the delivery that made the effect. False for a repeat of the same id and
        content, which is counted in `requests`.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
        Conflict: the id was accepted with another type or payload; nothing was changed.
        sqlite3.ProgrammingError: the effect ended the transaction that it was called in.
        Exception: whatever else `effect` raised, unchanged; neither row nor effect is left.

    Hooks: `after-inbox` and `after-effect` before COMMIT, `after-commit` after it; none unless
        True is returned.
    """
    checked = checks.recorded_event(event)
    event_id, event_type = checked["id"], checked["event_type"]
    payload_json = wire.canonical(checked["payload"])
    content = (event_type, payload_json)
    checks.now(now_ms, limits)
    with write_transaction(con):
        found = INBOX_EVENT_FIND.optional(con, id=event_id)
        if found is None:
            INBOX_EVENT_RECORD.none(
                con,
                id=event_id,
                event_type=event_type,
                payload_json=payload_json,
                now_ms=now_ms,
            )
            if fault is not None:
                fault("after-inbox")
            if effect is not None:
                payload = wire.parse(payload_json.encode())
                own = RecordedEvent(id=event_id, event_type=event_type, payload=payload)
                make(effect, con, own)
            if fault is not None:
                fault("after-effect")
        elif found == content:
            INBOX_EVENT_REPEAT.count(con, id=event_id, now_ms=now_ms)
    if found is None:
        if fault is not None:
            fault("after-commit")
        return True
    if found == content:
        return False
    # The first content stays unsaid: this text may go out to whoever sent the second.
    raise Conflict(f"event {event_id} was accepted with other content; use another id")
