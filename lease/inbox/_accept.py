"""Accept an event once: the inbox row and the effect commit together or not at all."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lease import checks
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import Conflict
from lease.limits import WIDE, Limits
from lease.model import Event, Fault

INBOX_FIND = statement("inbox_find")
INBOX_RECORD = statement("inbox_record")
INBOX_APPLY = statement("inbox_apply")
INBOX_REPEAT = statement("inbox_repeat")

#: Makes the application's effect of one event on the connection it is given, and leaves the
#: commit to `accept`.
Effect = Callable[[sqlite3.Connection, Event], object]

AnyEvent = TypeVar("AnyEvent", bound=Mapping[str, Any])


def accept(
    con: sqlite3.Connection,
    event: Event,
    now_ms: int,
    effect: Effect | None = None,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> bool:
    """Make the effect of an event unless an earlier delivery has made it.

    Args:
        con: a connection with no transaction open, on a file with the inbox's tables.
        event: exactly `id` and `qty`; never changed.
        now_ms: the present, milliseconds.
        effect: called inside the transaction with the connection and its own copy of the
            event; what it writes there commits with the inbox row. It must not commit, roll
            back, use `with con:` or `executescript`. None records a row in `effects`.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        True for the delivery that made the effect. False for a repeat of the same id and
        quantity, which is counted in `requests`.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
        Conflict: the id was accepted with another quantity; nothing was changed.
        sqlite3.ProgrammingError: the effect ended the transaction that it was called in.
        Exception: whatever else `effect` raised, unchanged; neither row nor effect is left.

    Hooks: `after-inbox` and `after-effect` before COMMIT, `after-commit` after it; none unless
        True is returned.
    """
    event_id, qty = checks.event(event)
    checks.now(now_ms, limits)
    with write_transaction(con):
        found = INBOX_FIND.optional(con, id=event_id)
        if found is None:
            INBOX_RECORD.none(con, id=event_id, qty=qty, now_ms=now_ms)
            if fault is not None:
                fault("after-inbox")
            if effect is None:
                INBOX_APPLY.none(con, id=event_id, qty=qty, now_ms=now_ms)
            else:
                make(effect, con, Event(id=event_id, qty=qty))
            if fault is not None:
                fault("after-effect")
        elif found == (qty,):
            INBOX_REPEAT.count(con, id=event_id, now_ms=now_ms)
    if found is None:
        if fault is not None:
            fault("after-commit")
        return True
    if found == (qty,):
        return False
    # The first quantity stays unsaid: this text may go out to whoever sent the second.
    raise Conflict(f"event {event_id} was accepted with another qty, not {qty}; use another id")


def make(
    effect: Callable[[sqlite3.Connection, AnyEvent], object],
    con: sqlite3.Connection,
    event: AnyEvent,
) -> None:
    """Call an effect, and refuse one that ended the transaction."""
    effect(con, event)
    if not con.in_transaction:
        raise sqlite3.ProgrammingError(
            f"the effect of event {event['id']} ended the transaction that it was called in, so "
            "the two may have parted; let accept() commit, and check what is recorded of this event"
        )
