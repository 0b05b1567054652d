"""Find the jobs that are due by the tree, and keep its bounds from misleading the next claim."""

import sqlite3
from typing import NamedTuple

from lease.db.arrays import array
from lease.db.migrations import is_about_sql
from lease.db.statements import statement

CLAIM_LOOK = statement("claim_look")
CLAIM_QUARANTINE = statement("claim_quarantine")
CLAIM_FIND = statement("claim_find")
CLAIM_BARE_QUARANTINE = statement("claim_bare_quarantine")
CLAIM_BARE_FIND = statement("claim_bare_find")
CLAIM_STALE = statement("claim_stale")
CLAIM_RECOUNT = statement("claim_recount")

# The largest integer that SQLite holds.
_PAST_ALL = 2**63 - 1


class Due(NamedTuple):
    """What a search came to.

    Args:
        buried: whether a job was put into quarantine.
        seqs: the claimable jobs, oldest first.
        past_seq: where the search ended; beyond it nothing is known.
        by_tree: whether the file has the tree.
    """

    buried: bool
    seqs: list[int]
    past_seq: int
    by_tree: bool = True


def search(con: sqlite3.Connection, now_ms: int, max_jobs: int) -> Due:
    """Bury every job that nobody may try again, then choose the oldest claimable ones.

    A file that `open_queue` has never seen, or whose tree was rolled back, is read in full.
    """
    try:
        is_overdue, seq = CLAIM_LOOK.one(con, now_ms=now_ms)
    except sqlite3.OperationalError as error:
        if not is_about_sql(error):
            raise
        return _search_bare(con, now_ms, max_jobs)
    buried = bool(is_overdue)
    if buried:
        CLAIM_QUARANTINE.count(con, now_ms=now_ms)
    if seq is None:
        seqs = []
    elif max_jobs == 1 and not buried:
        seqs = [seq]
    else:
        seqs = [seq for (seq,) in CLAIM_FIND.many(con, now_ms=now_ms, max_jobs=max_jobs)]
    return Due(buried, seqs, seqs[-1] if len(seqs) == max_jobs else _PAST_ALL)


def tidy(con: sqlite3.Connection, now_ms: int, due: Due) -> None:
    """Raise the bounds that made a claim look in vain; to be called once the jobs are leased.

    A claim that changes no job writes nothing, and leaves this to the next one that does.
    """
    if not due.by_tree or not (due.buried or due.seqs):
        return
    stale = CLAIM_STALE.many(con, now_ms=now_ms, past_seq=due.past_seq)
    if stale:
        CLAIM_RECOUNT.none(con, leaves=array(leaf for (leaf,) in stale))


def _search_bare(con: sqlite3.Connection, now_ms: int, max_jobs: int) -> Due:
    buried = CLAIM_BARE_QUARANTINE.count(con, now_ms=now_ms) > 0
    seqs = [seq for (seq,) in CLAIM_BARE_FIND.many(con, now_ms=now_ms, max_jobs=max_jobs)]
    return Due(buried, seqs, _PAST_ALL, by_tree=False)
