"""redrive_many: as many redrives in one transaction, an answer for each."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lease import WIDE, jobs
from lease.jobs import claim, finish, redrive_check, redrive_many
from tests.support.batches import equal_queues, many_pasts, seeds, sequences, statements, untouched
from tests.support.histories import IDS
from tests.support.queue import (
    ERRORS,
    NOW,
    Hook,
    all_jobs,
    audits,
    committed,
    failing_at,
    job,
    put_dead,
    put_leased,
    put_pending,
    reading,
    ticket_of,
    unchanged,
    without_waiting,
    writing,
)
from tests.support.refused import IDENTIFIERS, instants, integers, table

GOOD = {"job_ids": ["job-1"], "now_ms": NOW, "ttl_ms": 1000, "note": "receiver-mended"}

UNUSABLE = table(
    job_ids=sequences(["job-1"]),
    now_ms=instants(WIDE),
    ttl_ms=integers(1, WIDE.max_ttl_ms),
    note=IDENTIFIERS,
)


@pytest.mark.parametrize(("argument", "value"), UNUSABLE)
def test_redrive_many_refuses(argument: str, value: object) -> None:
    """Input of another type or range is a ValueError before anything changes."""
    hook = Hook()

    with untouched(put_dead) as con, pytest.raises(ValueError, match=f"^{argument} must be"):
        redrive_many(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


@pytest.mark.parametrize("job_id", IDENTIFIERS)
def test_redrive_many_names_the_unusable_id(job_id: object) -> None:
    """One unusable id refuses the batch, and the message says which it is."""
    with (
        untouched(put_dead) as con,
        pytest.raises(ValueError, match=r"^job_ids\[1\]: id must be"),
    ):
        redrive_many(con, ["job-1", job_id], NOW, 1000, "n")


@pytest.mark.parametrize(("now_ms", "ttl_ms"), [(0, 1), (WIDE.max_now_ms, WIDE.max_ttl_ms)])
def test_redrive_many_accepts_the_ends(con: sqlite3.Connection, now_ms: int, ttl_ms: int) -> None:
    """The lowest and the largest instant and time to live belong to their ranges."""
    put_dead(con)

    assert redrive_many(con, ("job-1",), now_ms, ttl_ms, "n") == ["redriven"]
    assert (job(con)["available_at"], job(con)["deadline"]) == (now_ms, now_ms + ttl_ms)


def test_redrive_many_judges_each_id(con: sqlite3.Connection) -> None:
    """What a job is, and what stands before it in the batch, decides on each id alone."""
    put_pending(con, id="waiting")
    put_leased(con, id="held")
    put_pending(con, id="over", status="done")
    put_dead(con, id="a")
    put_dead(con, id="b")
    before = all_jobs(con)
    wanted = ["b", "none", "waiting", "a", "held", "over", "b", "A", "none"]

    assert redrive_many(con, wanted, NOW, 1000, "n") == [
        "redriven",
        "missing",
        "pending",
        "redriven",
        "leased",
        "done",
        "pending",
        "missing",
        "missing",
    ]
    assert [each["status"] for each in all_jobs(con)[3:]] == ["pending", "pending"]
    assert all_jobs(con)[:3] == before[:3]
    assert wanted == ["b", "none", "waiting", "a", "held", "over", "b", "A", "none"]


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"reason": "exhausted"}, id="exhausted"),
        pytest.param({"reason": "deadline", "attempts": 0, "token": 0}, id="never-claimed"),
        pytest.param({"reason": "permanent", "qty": 9, "max_attempts": 7}, id="permanent"),
        pytest.param({"owner": "worker-a", "lease_until": NOW + 1}, id="made-by-hand"),
    ],
)
def test_redrive_many_releases_and_records(
    con: sqlite3.Connection, queue_path: Path, columns: dict[str, Any]
) -> None:
    """Fresh budget and deadline; quantity, size of the budget and token are kept; one audit row."""
    before = put_dead(con, **columns)

    redrive_many(con, ["job-1"], NOW, 40_000, "receiver-mended")
    released = before | {
        "status": "pending",
        "attempts": 0,
        "available_at": NOW,
        "deadline": NOW + 40_000,
        "owner": None,
        "lease_until": None,
        "reason": None,
    }
    audit = {
        "seq": 1,
        "id": "job-1",
        "token": before["token"],
        "at_ms": NOW,
        "note": "receiver-mended",
    }
    assert not con.in_transaction
    assert committed(queue_path) == ([released], [audit])


def test_redrive_many_audits_in_the_order_given(con: sqlite3.Connection) -> None:
    """Each job has one row, with its own token, where its id stood first."""
    for token, name in enumerate("abc"):
        put_dead(con, id=name, token=token)
    redrive_many(con, ["c", "a", "c", "b"], NOW, 1000, "n")

    assert [(each["seq"], each["id"], each["token"]) for each in audits(con)] == [
        (1, "c", 2),
        (2, "a", 0),
        (3, "b", 1),
    ]


def test_redrive_many_leaves_old_tickets_stale(con: sqlite3.Connection) -> None:
    """The next claim has the first attempt and a token that was never given out."""
    old = ticket_of(put_leased(con, max_attempts=1))
    assert finish(con, old, "retry", NOW) == "dead"
    redrive_many(con, ["job-1"], NOW, 5000, "n")

    assert finish(con, old, "ok", NOW) is False
    current = claim(con, "worker-a", NOW, 1000)
    assert current == {**old, "token": old["token"] + 1}
    assert finish(con, current, "ok", NOW) == "done"


@pytest.mark.parametrize("wanted", [[], (), ["job-1"], ["none", "job-1", "job-1"]])
def test_redrive_many_of_nothing_dead(
    con: sqlite3.Connection, queue_path: Path, wanted: Any
) -> None:
    """Where no job is dead no hook is called and no byte changes."""
    put_pending(con)
    hook = Hook()

    with unchanged(con, queue_path):
        releases = redrive_many(con, wanted, NOW, 1000, "n", hook)
    assert releases == ["missing" if each == "none" else "pending" for each in wanted]
    assert hook == []


def test_redrive_many_accepts_the_largest_batch(con: sqlite3.Connection) -> None:
    """Ten thousand jobs fit into one transaction."""
    ids = [f"job-{number}" for number in range(10_000)]
    jobs.enqueue_many(con, [{"id": each, "qty": 1} for each in ids], NOW, 60_000)
    con.execute("UPDATE jobs SET status = 'dead', reason = 'permanent'")

    assert redrive_many(con, ids, NOW, 1000, "n") == ["redriven"] * 10_000
    assert {each["status"] for each in all_jobs(con)} == {"pending"}
    assert [each["id"] for each in audits(con)] == ids
    assert jobs.tree_check(con) == []


@pytest.mark.parametrize("number", [1, 200])
def test_redrive_many_takes_any_number_by_the_same_statements(
    con: sqlite3.Connection, number: int
) -> None:
    """However many jobs, they are found, recorded and released at once each."""
    ids = [put_dead(con, id=f"job-{each}")["id"] for each in range(number)]

    assert statements(con, lambda: redrive_many(con, ids, NOW, 1000, "n")) == [
        "BEGIN IMMEDIATE",
        "redrive_many_find",
        "redrive_many_audit",
        "redrive_many_release",
        "COMMIT",
    ]


def test_redrive_many_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """All audit rows, then all states, then COMMIT; others see them at once, at the last hook."""
    ids = [put_dead(con, id=name)["id"] for name in ("a", "b")]
    seen = []

    def state(rows: list[Any], written: list[Any]) -> tuple[list[str], int]:
        return [row["status"] for row in rows], len(written)

    def hook(boundary: str) -> None:
        own = state(all_jobs(con), audits(con))
        seen.append((boundary, con.in_transaction, own, state(*committed(queue_path))))

    redrive_many(con, ids, NOW, 1000, "n", hook)
    dead, pending = ["dead", "dead"], ["pending", "pending"]
    assert seen == [
        ("after-audit", True, (dead, 2), (dead, 0)),
        ("after-redrive", True, (pending, 2), (dead, 0)),
        ("after-commit", False, (pending, 2), (pending, 2)),
    ]


@pytest.mark.parametrize("boundary", ["after-audit", "after-redrive"])
@pytest.mark.parametrize("kind", ERRORS)
def test_redrive_many_rolls_back_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException], boundary: str
) -> None:
    """An error before the commit takes the whole batch back and comes out as it is."""
    ids = [put_dead(con, id=name)["id"] for name in ("a", "b")]
    error = kind("boom")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        redrive_many(con, ids, NOW, 1000, "n", failing_at(boundary, error))
    assert caught.value is error
    assert audits(con) == []


def test_redrive_many_keeps_the_commit_of_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """An error after the commit leaves the jobs released, and their audit rows."""
    put_dead(con)

    with pytest.raises(KeyboardInterrupt):
        redrive_many(con, **GOOD, fault=failing_at("after-commit", KeyboardInterrupt()))
    assert not con.in_transaction
    (released,), written = committed(queue_path)
    assert (released["status"], len(written)) == ("pending", 1)


def test_redrive_many_under_a_reader(con: sqlite3.Connection, queue_path: Path) -> None:
    """A commit that a reader prevents is rolled back and reported."""
    put_dead(con)
    without_waiting(con)

    with (
        reading(queue_path),
        unchanged(con, queue_path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        redrive_many(con, **GOOD)
    assert (job(con)["status"], audits(con)) == ("dead", [])


def test_redrive_many_under_a_writer(con: sqlite3.Connection, queue_path: Path) -> None:
    """Whether a job is dead is decided under the write lock, never before it."""
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        redrive_many(con, **GOOD)
    assert not con.in_transaction


def test_redrive_check_tells_and_changes_nothing(con: sqlite3.Connection, queue_path: Path) -> None:
    """It answers as the release would, also while somebody writes."""
    put_dead(con)
    put_leased(con, id="held")
    wanted = ["held", "job-1", "none", "job-1"]

    with unchanged(con, queue_path), writing(queue_path):
        told = redrive_check(con, wanted)
    assert told == ["leased", "redriven", "missing", "pending"]
    assert redrive_many(con, wanted, NOW, 1000, "n") == told


@pytest.mark.parametrize("value", sequences(["job-1"]))
def test_redrive_check_refuses(con: sqlite3.Connection, value: Any) -> None:
    """Its argument is that of `redrive_many`."""
    with pytest.raises(ValueError, match=r"^job_ids must be"):
        redrive_check(con, value)


@many_pasts
@given(seed=seeds, wanted=st.lists(st.sampled_from([*IDS, "none"]), max_size=20))
def test_redrive_many_is_that_many_redrives(seed: int, wanted: list[str]) -> None:
    """Id by id the answer and the rows are those of single calls in order."""
    with equal_queues(seed) as (one, other, history):
        for con in (one, other):
            con.execute("UPDATE jobs SET status = 'dead', reason = 'permanent' WHERE seq % 2")
        singly = []
        for job_id in wanted:
            try:
                jobs.redrive(other, job_id, history.now_ms, 500, "note")
                singly.append("redriven")
            except ValueError as error:
                singly.append("missing" if "no job" in str(error) else str(error).split()[3][:-1])

        assert redrive_many(one, wanted, history.now_ms, 500, "note") == singly
