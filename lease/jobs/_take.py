"""Lease jobs to a worker, inside a transaction that is already open."""

import sqlite3

from lease.db.arrays import array
from lease.db.statements import Row, statement
from lease.jobs._walk import search, tidy
from lease.model import Ticket

CLAIM_TAKE = statement("claim_take")
CLAIM_MANY_TAKE = statement("claim_many_take")


def take(
    con: sqlite3.Connection, owner: str, now_ms: int, lease_ms: int, max_jobs: int
) -> list[Ticket]:
    """Bury what has run out, then lease the oldest claimable jobs; return their tickets in order.

    One job is leased by a statement of its own, which costs less than that for a set.
    """
    due = search(con, now_ms, max_jobs)
    if len(due.seqs) == 1:
        (seq,) = due.seqs
        taken = [CLAIM_TAKE.one(con, seq=seq, owner=owner, now_ms=now_ms, lease_ms=lease_ms)]
    elif due.seqs:
        seqs = array(due.seqs)
        taken = CLAIM_MANY_TAKE.many(con, seqs=seqs, owner=owner, now_ms=now_ms, lease_ms=lease_ms)
        taken.sort()
    else:
        taken = []
    tidy(con, now_ms, due)
    return [_ticket(row) for row in taken]


def _ticket(row: Row) -> Ticket:
    _seq, job_id, qty, owner, token, attempt, lease_until = row
    return Ticket(
        id=job_id, qty=qty, owner=owner, token=token, attempt=attempt, lease_until=lease_until
    )
