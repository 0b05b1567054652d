"""Take in several jobs in one transaction, each of them once."""

import sqlite3
from collections.abc import Sequence
from typing import Literal

from lease import checks
from lease.db.arrays import array
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.limits import WIDE, Limits
from lease.model import Event, Fault

ENQUEUE_MANY_FIND = statement("enqueue_many_find")
ENQUEUE_MANY_INSERT = statement("enqueue_many_insert")

Intake = Literal["new", "duplicate", "conflict"]


def enqueue_many(
    con: sqlite3.Connection,
    events: Sequence[Event],
    now_ms: int,
    ttl_ms: int,
    max_attempts: int = 3,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> list[Intake]:
    """Record new jobs, as a call of `enqueue` for each event in order would.

    A conflict among them holds up no other.

    Args:
        con: a connection with no transaction open.
        events: a list or tuple of up to 10000 dicts of exactly `id` and `qty`; never changed.
        now_ms: the present, milliseconds.
        ttl_ms: time to live of each new job, milliseconds from 1.
        max_attempts: how often each new job may be claimed, from 1.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        For each event in order `new`; `duplicate` if its id is recorded, or stands before it in
        the batch, with the same quantity; `conflict` if with another one, which changes nothing.

    Raises:
        ValueError: an argument is not of its exact type or out of range; the message says which
            event, and none was recorded.

    Hooks: `after-enqueue` before COMMIT, `after-commit` after it, once each; neither when no
    event is new.
    """
    wanted = checks.events(events)
    checks.now(now_ms, limits)
    checks.integer("ttl_ms", ttl_ms, 1, limits.max_ttl_ms)
    checks.integer("max_attempts", max_attempts, 1, limits.max_attempts)
    with write_transaction(con):
        recorded: dict[str, int] = dict(
            ENQUEUE_MANY_FIND.many(con, ids=array(job_id for job_id, _qty in wanted))
        )
        intakes, new = _judge(wanted, recorded)
        if new:
            ENQUEUE_MANY_INSERT.none(
                con, events=array(new), max_attempts=max_attempts, now_ms=now_ms, ttl_ms=ttl_ms
            )
            if fault is not None:
                fault("after-enqueue")
    if new and fault is not None:
        fault("after-commit")
    return intakes


def _judge(
    wanted: list[tuple[str, int]], recorded: dict[str, int]
) -> tuple[list[Intake], list[tuple[str, int]]]:
    intakes: list[Intake] = []
    new = []
    for job_id, qty in wanted:
        if job_id not in recorded:
            recorded[job_id] = qty
            new.append((job_id, qty))
            intakes.append("new")
        elif recorded[job_id] == qty:
            intakes.append("duplicate")
        else:
            intakes.append("conflict")
    return intakes, new
