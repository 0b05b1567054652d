"""Release several jobs from quarantine in one transaction, each with its audit row."""

import sqlite3
from collections.abc import Sequence
from typing import Literal

from lease import checks
from lease.db.arrays import array
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.limits import WIDE, Limits
from lease.model import Fault

REDRIVE_MANY_FIND = statement("redrive_many_find")
REDRIVE_MANY_AUDIT = statement("redrive_many_audit")
REDRIVE_MANY_RELEASE = statement("redrive_many_release")

Release = Literal["redriven", "missing", "pending", "leased", "done"]


def redrive_many(
    con: sqlite3.Connection,
    job_ids: Sequence[str],
    now_ms: int,
    ttl_ms: int,
    note: str,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> list[Release]:
    """Release dead jobs, as a call of `redrive` for each id in order would.

    A job that is not dead among them holds up no other.

    Args:
        con: a connection with no transaction open.
        job_ids: a list or tuple of up to 10000 identifiers; never changed.
        now_ms: the present, milliseconds.
        ttl_ms: new time to live of each job, milliseconds from 1.
        note: identifier that states the reason, for the audit rows.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        For each id in order `redriven`; `missing` if there is no such job; or `pending`, `leased`
        or `done`, which the job is and stays. An id that comes twice is `pending` the second time.

    Raises:
        ValueError: an argument is not of its exact type or out of range; the message says which
            id, and none was released.

    Hooks: `after-audit` and `after-redrive` before COMMIT, `after-commit` after it, once each;
    none when no job was released.
    """
    wanted = checks.identifiers("job_ids", job_ids)
    checks.now(now_ms, limits)
    checks.integer("ttl_ms", ttl_ms, 1, limits.max_ttl_ms)
    checks.identifier("note", note)
    with write_transaction(con):
        releases, dead = _judge(con, wanted)
        if dead:
            seqs = array(dead)
            REDRIVE_MANY_AUDIT.none(con, seqs=seqs, now_ms=now_ms, note=note)
            if fault is not None:
                fault("after-audit")
            REDRIVE_MANY_RELEASE.none(con, seqs=seqs, now_ms=now_ms, ttl_ms=ttl_ms)
            if fault is not None:
                fault("after-redrive")
    if dead and fault is not None:
        fault("after-commit")
    return releases


def redrive_check(con: sqlite3.Connection, job_ids: Sequence[str]) -> list[Release]:
    """Tell what `redrive_many` would come to at this moment.

    Args:
        con: a connection to a queue; only read from.
        job_ids: a list or tuple of up to 10000 identifiers; never changed.

    Returns:
        What `redrive_many` would return.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: none.
    """
    return _judge(con, checks.identifiers("job_ids", job_ids))[0]


def _judge(con: sqlite3.Connection, wanted: list[str]) -> tuple[list[Release], list[int]]:
    """Return what becomes of each id, and the dead jobs in the order in which they are named."""
    releases: list[Release] = ["missing"] * len(wanted)
    dead: dict[int, None] = {}
    for position, seq, status in REDRIVE_MANY_FIND.many(con, ids=array(wanted)):
        if status != "dead":
            releases[position] = status
        elif seq in dead:
            # The one before it has revived this job.
            releases[position] = "pending"
        else:
            releases[position] = "redriven"
            dead[seq] = None
    return releases, list(dead)
