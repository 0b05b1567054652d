"""read_evidence: what the two files say, whatever it is."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from lease.demo import JobEvidence
from lease.demo._evidence import Kill, read_evidence
from lease.inbox import accept, open_inbox
from tests.support.queue import NOW, put_dead, put_leased

KILL = Kill("job-1", -9, "leased", 1, committed=True)


def test_read_evidence_joins_both_databases(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """A job has its state from the queue, and its requests, row and effect from the inbox."""
    put_dead(con, id="twice", qty=3, status="done", token=2)
    put_leased(con, id="never", qty=4, token=1)
    inbox = tmp_path / "inbox.db"
    with closing(open_inbox(inbox)) as other:
        for _ in range(2):
            accept(other, {"id": "twice", "qty": 3}, NOW)
        accept(other, {"id": "stranger", "qty": 5}, NOW)
        other.execute("INSERT INTO effects (id, qty, at_ms) VALUES ('foreign', 1, 1)")

    evidence = read_evidence(str(queue_path), str(inbox), Counter(twice=2, never=1), KILL)

    assert evidence.jobs == [
        JobEvidence("twice", 3, "done", 2, 2, requests=2, inbox=(3,), effects=(3,)),
        JobEvidence("never", 4, "leased", 1, 1, requests=0, inbox=(), effects=()),
    ]
    assert evidence.strangers == ["foreign", "stranger"]
    assert evidence.kill is KILL


def test_read_evidence_without_an_inbox_leaves_it_open(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """What cannot be seen is None and not zero."""
    put_leased(con, id="a", qty=4, token=1)

    evidence = read_evidence(str(queue_path), None, Counter(), KILL)

    assert evidence.jobs == [
        JobEvidence("a", 4, "leased", 1, 0, requests=None, inbox=None, effects=None)
    ]
    assert evidence.strangers == []
