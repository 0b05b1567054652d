"""stats: what is counted, under which key."""

import sqlite3
from pathlib import Path

from lease import jobs
from tests.support.queue import DEADLINE, NOW, put_dead, put_leased, put_pending, unchanged

EMPTY = {
    "jobs": 0,
    "pending": 0,
    "leased": 0,
    "done": 0,
    "dead": 0,
    "dead_reasons": {"deadline": 0, "exhausted": 0, "permanent": 0},
    "claims": 0,
    "redrives": 0,
    "next_due_ms": None,
}


def test_stats_of_an_empty_queue_are_zero(con: sqlite3.Connection) -> None:
    """Every key is there before the first job."""
    assert jobs.stats(con) == EMPTY


def test_stats_count_states_reasons_claims_and_redrives(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Each job counts once, its claims by its token; nothing is written."""
    put_pending(con, id="new", available_at=NOW + 1)
    put_pending(con, id="again", reason="retry", token=2)
    put_pending(con, id="odd", reason="deadline", available_at=NOW + 1)
    put_leased(con, id="held", token=4)
    put_dead(con, id="settled", status="done", reason=None, token=1)
    put_dead(con, id="late", reason="deadline", token=0)
    put_dead(con, id="tired", reason="exhausted", token=8)
    put_dead(con, id="refused", reason="permanent", token=1)
    put_dead(con, id="foreign", reason="somebody else's", token=16)
    put_dead(con, id="revived", reason="permanent", token=32)
    jobs.redrive(con, "revived", NOW, DEADLINE, "fixed")

    with unchanged(con, queue_path):
        counted = jobs.stats(con)

    assert counted == {
        "jobs": 10,
        "pending": 4,
        "leased": 1,
        "done": 1,
        "dead": 4,
        "dead_reasons": {"deadline": 1, "exhausted": 1, "permanent": 1},
        "claims": 64,
        "redrives": 1,
        "next_due_ms": NOW,
    }
