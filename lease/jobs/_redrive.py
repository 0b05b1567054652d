"""Release a job from quarantine and leave an audit row, both or neither."""

import sqlite3
from typing import Literal

from lease import checks
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.limits import WIDE, Limits
from lease.model import Fault

REDRIVE_FIND = statement("redrive_find")
REDRIVE_AUDIT = statement("redrive_audit")
REDRIVE_RELEASE = statement("redrive_release")


def redrive(
    con: sqlite3.Connection,
    job_id: str,
    now_ms: int,
    ttl_ms: int,
    note: str,
    fault: Fault | None = None,
    *,
    limits: Limits = WIDE,
) -> Literal[True]:
    """Give a dead job a fresh attempt budget and deadline; its token goes on from where it was.

    Meant for a privileged operator; who may call it is the application's to decide.

    Args:
        con: a connection with no transaction open.
        job_id: identifier of a dead job.
        now_ms: the present, milliseconds.
        ttl_ms: new time to live, milliseconds from 1.
        note: identifier that states the reason, for the audit row.
        fault: called at each commit boundary; None for never.
        limits: the upper bounds of the numbers.

    Returns:
        True.

    Raises:
        ValueError: an argument is not of its exact type or out of range, or the job does not
            exist or is not dead.

    Hooks: `after-audit` and `after-redrive` before COMMIT, `after-commit` after it.

    Source: contract, step 6.
    """
    checks.identifier("job_id", job_id)
    checks.now(now_ms, limits)
    checks.integer("ttl_ms", ttl_ms, 1, limits.max_ttl_ms)
    checks.identifier("note", note)
    with write_transaction(con):
        checks.dead(job_id, REDRIVE_FIND.optional(con, job_id=job_id))
        REDRIVE_AUDIT.count(con, job_id=job_id, now_ms=now_ms, note=note)
        if fault is not None:
            fault("after-audit")
        REDRIVE_RELEASE.count(con, job_id=job_id, now_ms=now_ms, ttl_ms=ttl_ms)
        if fault is not None:
            fault("after-redrive")
    if fault is not None:
        fault("after-commit")
    return True
