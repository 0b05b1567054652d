"""Turn a delivery into its effect, once however often it is delivered."""

import logging
import sqlite3

from lease.clock import wall_ms
from lease.db.transaction import write_transaction
from lease.model import Clock, Fault
from lease.outbox import checks
from lease.outbox._find import find
from lease.outbox._settle import settle
from lease.outbox._time import iso
from lease.outbox.model import Effect, Record

_log = logging.getLogger("lease.outbox")


def apply(
    con: sqlite3.Connection,
    record: Record,
    effect: Effect,
    *,
    clock: Clock = wall_ms,
    fault: Fault | None = None,
) -> bool:
    """Commit a record's effect and its transition to processed, both or neither.

    The delivered copy only says which record to look at. Type and payload come from the row; a
    copy that differs from it, or has no row, is reported to the logger `lease.outbox`.

    Args:
        con: a connection with no transaction open, on the database that holds the outbox.
        record: a delivery: what `receive` or `pending` returned.
        effect: called with the connection and the row's record, inside the transaction; must
            neither commit nor roll back. What it does elsewhere is not undone with the rest.
        clock: returns the present, milliseconds since 1970; the time of processing.
        fault: called at each commit boundary; None for never.

    Returns:
        True for the delivery that made the effect. False for a duplicate, and for a record that
        is not in the outbox.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.
        sqlite3.ProgrammingError: a transaction was open, or the effect ended the one it was in.
        Exception: whatever `effect` raised, unchanged; the record stays pending.

    Hooks: `after-mark` once the record is processed, `after-effect`, both before COMMIT;
    `after-commit` after it; none where False is returned.
    """
    hint = checks.record(record)
    processed_at = iso("clock()", clock())
    with write_transaction(con):
        found = find(con, hint["id"])
        truth = found[0] if found else None
        made = truth is not None and settle(con, truth, processed_at)
        if truth is not None and made:
            if fault is not None:
                fault("after-mark")
            effect(con, Record(**truth))
            if not con.in_transaction:
                raise sqlite3.ProgrammingError(
                    f"the effect of record {hint['id']} ended the transaction that it shares "
                    "with the record; leave COMMIT and ROLLBACK to apply"
                )
            if fault is not None:
                fault("after-effect")
    _report(hint, truth)
    if made and fault is not None:
        fault("after-commit")
    return made


def _report(hint: Record, truth: Record | None) -> None:
    if truth is None:
        _log.warning("record %s was delivered but is not in the outbox; ignored", hint["id"])
    elif truth != hint:
        _log.warning(
            "the delivered copy of record %s differs from the outbox, which was obeyed", hint["id"]
        )
