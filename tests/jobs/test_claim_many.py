"""claim_many: as many claims in one transaction."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lease import WIDE, jobs
from lease.jobs import claim_many
from tests.support.batches import equal_queues, many_pasts, seeds, statements, untouched
from tests.support.queue import (
    BARE_SCHEMA,
    ERRORS,
    NOW,
    Hook,
    all_jobs,
    committed,
    failing_at,
    job,
    put_leased,
    put_pending,
    reading,
    unchanged,
    without_waiting,
)
from tests.support.refused import IDENTIFIERS, instants, integers, table

GOOD = {"owner": "worker-b", "now_ms": NOW, "max_jobs": 2, "lease_ms": 1000}

UNUSABLE = table(
    owner=IDENTIFIERS,
    now_ms=instants(WIDE),
    max_jobs=integers(1, 10_000),
    lease_ms=integers(1, WIDE.max_lease_ms),
)


def put_due(con: sqlite3.Connection) -> None:
    """Insert a job to lease and one to bury."""
    put_pending(con)
    put_pending(con, id="overdue", deadline=NOW)


@pytest.mark.parametrize(("argument", "value"), UNUSABLE)
def test_claim_many_refuses(argument: str, value: object) -> None:
    """Input of another type or range is a ValueError before anything is swept or leased."""
    hook = Hook()

    with untouched(put_due) as con, pytest.raises(ValueError, match=f"^{argument} must be"):
        claim_many(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


def test_claim_many_takes_the_oldest_in_order(con: sqlite3.Connection) -> None:
    """The tickets come by seq, each under its own next token, and no job more than asked for."""
    for seq, token in ((9, 0), (2, 5), (200, 1), (5, 3), (300, 0)):
        put_pending(con, id=f"job-{seq}", seq=seq, token=token, deadline=NOW + 100 * seq)
    held = put_leased(con, id="held", seq=1)

    tickets = claim_many(con, "worker-b", NOW, 4, 600)
    assert [(each["id"], each["token"], each["lease_until"]) for each in tickets] == [
        ("job-2", 6, NOW + 200),
        ("job-5", 4, NOW + 500),
        ("job-9", 1, NOW + 600),
        ("job-200", 2, NOW + 600),
    ]
    assert [row["status"] for row in all_jobs(con)] == ["leased"] * 5 + ["pending"]
    assert job(con, "held") == held
    assert {tuple(each) for each in tickets} == {
        ("id", "qty", "owner", "token", "attempt", "lease_until")
    }


@pytest.mark.parametrize(("max_jobs", "number"), [(2, 2), (3, 3), (4, 3), (10_000, 3)])
def test_claim_many_takes_what_there_is(
    con: sqlite3.Connection, max_jobs: int, number: int
) -> None:
    """There are fewer tickets than asked for only where no more jobs are claimable."""
    for name in ("a", "b", "c"):
        put_pending(con, id=name)
    put_pending(con, id="later", available_at=NOW + 1)

    assert len(claim_many(con, "worker-b", NOW, max_jobs)) == number


def test_claim_many_leases_for_a_second_unless_told(con: sqlite3.Connection) -> None:
    """The lease lasts 1000 ms by default."""
    put_pending(con)

    assert claim_many(con, "worker-b", NOW, 5)[0]["lease_until"] == NOW + 1000


def test_claim_many_of_nothing(con: sqlite3.Connection, queue_path: Path) -> None:
    """Where nothing is due there is no ticket, no hook and no changed byte."""
    put_pending(con, available_at=NOW + 1)
    hook = Hook()

    with unchanged(con, queue_path):
        assert claim_many(con, "worker-b", NOW, 5, fault=hook) == []
    assert hook == []


def test_claim_many_sweeps(con: sqlite3.Connection, queue_path: Path) -> None:
    """What has run out is buried, committed and without a hook, though nothing was leased."""
    put_pending(con, id="overdue", deadline=NOW)
    put_leased(con, id="used-up", attempts=3, lease_until=NOW)
    hook = Hook()

    assert claim_many(con, "worker-b", NOW, 5, fault=hook) == []
    assert hook == []
    assert [row["reason"] for row in committed(queue_path)[0]] == ["deadline", "exhausted"]


def test_claim_many_runs_the_same_statements_for_any_number(con: sqlite3.Connection) -> None:
    """Two jobs or a thousand: no statement a job, one for the tree, and one commit."""
    events = [{"id": f"job-{number}", "qty": 1} for number in range(202)]
    jobs.enqueue_many(con, events, NOW, 60_000)

    runs = ["claim_look", "claim_find", "claim_many_take", "claim_stale"]
    assert statements(con, lambda: claim_many(con, "worker-b", NOW, 2)) == [
        "BEGIN IMMEDIATE",
        *runs,
        "COMMIT",
    ]
    assert statements(con, lambda: claim_many(con, "worker-b", NOW, 200)) == [
        "BEGIN IMMEDIATE",
        *runs,
        "claim_recount",
        "COMMIT",
    ]


def test_claim_many_on_the_bare_tables(tmp_path: Path) -> None:
    """A file that has nothing but the contract's tables is read in full."""
    con = sqlite3.connect(tmp_path / "bare.db", isolation_level=None)
    con.executescript(BARE_SCHEMA)
    for name in ("a", "b", "c"):
        put_pending(con, id=name)

    assert [each["id"] for each in claim_many(con, "worker-b", NOW, 2)] == ["a", "b"]
    con.close()


def test_claim_many_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """The first hook comes before the only commit, the second after it."""
    put_pending(con, id="a")
    put_pending(con, id="b")
    seen = []

    def hook(boundary: str) -> None:
        states = [row["status"] for row in committed(queue_path)[0]]
        seen.append((boundary, states, con.in_transaction))

    claim_many(con, "worker-b", NOW, 5, 1000, hook)
    assert seen == [
        ("after-claim", ["pending", "pending"], True),
        ("after-commit", ["leased", "leased"], False),
    ]


@pytest.mark.parametrize("kind", ERRORS)
def test_claim_many_rolls_back_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """An error before the commit takes leases and sweep back and comes out as it is."""
    put_pending(con, id="a")
    put_pending(con, id="overdue", deadline=NOW)
    error = kind("boom")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        claim_many(con, "worker-b", NOW, 5, 1000, failing_at("after-claim", error))
    assert caught.value is error


def test_claim_many_keeps_the_commit_of_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """An error after the commit leaves the jobs leased."""
    put_pending(con)

    with pytest.raises(KeyboardInterrupt):
        claim_many(con, "w", NOW, 5, 1000, failing_at("after-commit", KeyboardInterrupt()))
    assert not con.in_transaction
    assert committed(queue_path)[0][0]["status"] == "leased"


def test_claim_many_under_a_reader(con: sqlite3.Connection, queue_path: Path) -> None:
    """A commit that a reader prevents is rolled back and reported."""
    row = put_pending(con)
    without_waiting(con)

    with reading(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        claim_many(con, "worker-b", NOW, 5)
    assert not con.in_transaction
    assert committed(queue_path)[0] == [row]


@many_pasts
@given(seed=seeds, max_jobs=st.integers(1, 16), lease_ms=st.sampled_from([1, 50, 600]))
def test_claim_many_is_that_many_claims(seed: int, max_jobs: int, lease_ms: int) -> None:
    """The tickets and the rows are those of single calls in order."""
    with equal_queues(seed) as (one, other, history):
        singly = [jobs.claim(other, "w", history.now_ms, lease_ms) for _ in range(max_jobs)]

        assert claim_many(one, "w", history.now_ms, max_jobs, lease_ms) == [
            each for each in singly if each
        ]
