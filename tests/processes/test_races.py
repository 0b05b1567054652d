"""Real processes that are let go at the same instant."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lease import enqueue, open_queue
from lease.db.connection import connect
from tests.processes.children import NOW_MS
from tests.support.processes import children

ROUNDS = 40


def add(con: sqlite3.Connection, job_id: str) -> None:
    """Record a job that may be claimed now."""
    assert enqueue(con, {"id": job_id, "qty": 1}, NOW_MS, 60_000)


def test_claim_has_one_winner(con: sqlite3.Connection, queue_path: Path):
    """Of two claimants at one job, exactly one gets it, in every round."""
    winners = []
    with children("claim_rounds", 2, str(queue_path), ROUNDS) as (claimants, gate):
        for number in range(ROUNDS):
            add(con, f"job-{number}")
            assert [each.hear() for each in claimants] == ["ready", "ready"]
            gate.open(2)
            tickets = [each.hear() for each in claimants]
            won = [ticket for ticket in tickets if ticket is not None]
            assert [(ticket["id"], ticket["token"]) for ticket in won] == [(f"job-{number}", 1)]
            winners.append(won[0]["owner"])
            for each in claimants:
                each.tell("all are through")
        assert [each.ended() for each in claimants] == [0, 0]

    assert len(winners) == ROUNDS
    claims = con.execute("SELECT status, attempts, token, count(*) FROM jobs GROUP BY 1, 2, 3")
    assert claims.fetchall() == [("leased", 1, 1, ROUNDS)]


def test_drain_hands_no_job_out_twice(con: sqlite3.Connection, queue_path: Path):
    """Four processes empty a queue together; each job goes to one of them, once."""
    ids = [f"job-{number}" for number in range(80)]
    for job_id in ids:
        add(con, job_id)
    with children("drain", 4, str(queue_path)) as (workers, gate):
        assert [each.hear() for each in workers] == ["ready"] * 4
        gate.open(4)
        handed = [tuple(each) for worker in workers for each in worker.hear()]
        assert [each.ended() for each in workers] == [0] * 4

    assert sorted(handed) == sorted((job_id, 1) for job_id in ids)
    states = con.execute("SELECT status, attempts, token, count(*) FROM jobs GROUP BY 1, 2, 3")
    assert states.fetchall() == [("done", 1, 1, len(ids))]
    assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_open_makes_one_schema(queue_path: Path, tmp_path: Path):
    """Ten processes that open one new path succeed or find it locked; the schema is there once."""
    with children("open_new", 10, str(queue_path)) as (openers, gate):
        assert [each.hear() for each in openers] == ["ready"] * 10
        gate.open(10)
        said = [each.hear() for each in openers]
        assert [each.ended() for each in openers] == [0] * 10

    assert set(said) <= {"opened", "SQLITE_BUSY"}
    assert "opened" in said
    open_queue(tmp_path / "alone.db").close()
    found = []
    for path in (queue_path, tmp_path / "alone.db"):
        with closing(connect(path, create=False)) as con:
            catalogue = con.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name")
            applied = con.execute("SELECT migration_id FROM _yoyo_log ORDER BY migration_id")
            found.append((catalogue.fetchall(), applied.fetchall()))
            assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert found[0] == found[1]
