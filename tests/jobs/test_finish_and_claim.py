"""finish_and_claim: finish_many and then claim_many, at the price of one commit."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lease import WIDE
from lease.jobs import claim_many, finish_and_claim, finish_many
from tests.support.batches import equal_queues, many_pasts, seeds, sequences, statements, untouched
from tests.support.queue import (
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
    ticket_of,
    unchanged,
    without_waiting,
)
from tests.support.refused import IDENTIFIERS, instants, integers, table

TICKET = {
    "id": "job-1",
    "qty": 7,
    "owner": "worker-a",
    "token": 4,
    "attempt": 1,
    "lease_until": NOW + 1000,
}
RESULT = (TICKET, "ok", 0)
GOOD = {
    "results": [RESULT],
    "owner": "worker-a",
    "now_ms": NOW,
    "max_jobs": 1,
    "lease_ms": 1000,
}

UNUSABLE = table(
    results=sequences([RESULT]),
    owner=IDENTIFIERS,
    now_ms=instants(WIDE),
    max_jobs=integers(1, 10_000),
    lease_ms=integers(1, WIDE.max_lease_ms),
)


def put_both(con: sqlite3.Connection) -> None:
    """Insert a job to finish and one to lease."""
    put_leased(con)
    put_pending(con, id="next")


@pytest.mark.parametrize(("argument", "value"), UNUSABLE)
def test_finish_and_claim_refuses(argument: str, value: object) -> None:
    """Input of another type or range is a ValueError before anything changes."""
    hook = Hook()

    with untouched(put_both) as con, pytest.raises(ValueError, match=f"^{argument} must be"):
        finish_and_claim(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


def test_finish_and_claim_names_the_unusable_result(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """One unusable result refuses all of it, and the message says which it is."""
    put_leased(con)

    with unchanged(con, queue_path), pytest.raises(ValueError, match=r"^results\[1\]: outcome"):
        finish_and_claim(con, [RESULT, (TICKET, "sent", 0)], "w", NOW, 1)


def test_finish_and_claim_does_both_by_one_commit(con: sqlite3.Connection) -> None:
    """One job is settled and one leased, by two plain statements and one commit."""
    put_leased(con)
    put_pending(con, id="next")
    found: list[Any] = []
    run = statements(con, lambda: found.append(finish_and_claim(con, [RESULT], "w", NOW, 1, 600)))

    ((statuses, tickets),) = found
    assert statuses == ["done"]
    assert tickets == [ticket_of(job(con, "next"))]
    assert run == [
        "BEGIN IMMEDIATE",
        "finish_settle",
        "claim_look",
        "claim_take",
        "claim_stale",
        "COMMIT",
    ]


def test_finish_and_claim_leases_for_a_second_unless_told(con: sqlite3.Connection) -> None:
    """The lease lasts 1000 ms by default."""
    put_pending(con)

    _, (ticket,) = finish_and_claim(con, [], "w", NOW, 1)
    assert ticket["lease_until"] == NOW + 1000


def test_finish_and_claim_takes_back_what_it_gave_up(con: sqlite3.Connection) -> None:
    """A retry without a delay is claimable in the same call."""
    put_leased(con)

    statuses, (ticket,) = finish_and_claim(con, [(TICKET, "retry", 0)], "w", NOW, 5)
    assert statuses == ["pending"]
    assert (ticket["id"], ticket["token"], ticket["attempt"]) == ("job-1", 5, 2)


@pytest.mark.parametrize(
    ("leased", "pending", "hooks"),
    [
        pytest.param({}, {}, ["after-finish", "after-claim", "after-commit"], id="both"),
        pytest.param({}, {"available_at": NOW + 1}, ["after-finish", "after-commit"], id="finish"),
        pytest.param({"token": 5}, {}, ["after-claim", "after-commit"], id="claim"),
        pytest.param({"token": 5}, {"deadline": NOW}, [], id="sweep"),
        pytest.param({"token": 5}, {"available_at": NOW + 1}, [], id="nothing"),
    ],
)
def test_finish_and_claim_hooks(
    con: sqlite3.Connection, leased: dict[str, int], pending: dict[str, int], hooks: list[str]
) -> None:
    """Each hook is called only where its change was made, the last one after the commit."""
    put_leased(con, **leased)
    put_pending(con, id="next", **pending)
    hook = Hook()
    open_at = []

    def watched(boundary: str) -> None:
        hook(boundary)
        open_at.append(con.in_transaction)

    finish_and_claim(con, [RESULT], "w", NOW, 1, 1000, watched)
    assert hook == hooks
    assert open_at == [boundary != "after-commit" for boundary in hooks]


def test_finish_and_claim_of_nothing(con: sqlite3.Connection, queue_path: Path) -> None:
    """Stale tickets and no claimable job change no byte."""
    put_leased(con, token=5)

    with unchanged(con, queue_path):
        assert finish_and_claim(con, [RESULT, RESULT], "w", NOW, 9) == ([False, False], [])
        assert finish_and_claim(con, [], "w", NOW, 9) == ([], [])


def test_finish_and_claim_sweeps(con: sqlite3.Connection, queue_path: Path) -> None:
    """What has run out is buried and committed, though nothing was settled or leased."""
    put_pending(con, deadline=NOW)

    assert finish_and_claim(con, [], "w", NOW, 9) == ([], [])
    assert committed(queue_path)[0][0]["reason"] == "deadline"


@pytest.mark.parametrize("boundary", ["after-finish", "after-claim"])
@pytest.mark.parametrize("kind", ERRORS)
def test_finish_and_claim_rolls_back_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, boundary: str, kind: type[BaseException]
) -> None:
    """An error before the commit takes both halves back and comes out as it is."""
    put_leased(con)
    put_pending(con, id="next")
    error = kind("boom")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        finish_and_claim(con, [RESULT], "w", NOW, 1, 1000, failing_at(boundary, error))
    assert caught.value is error


def test_finish_and_claim_keeps_the_commit_of_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """An error after the commit leaves both halves in force."""
    put_leased(con)
    put_pending(con, id="next")
    fault = failing_at("after-commit", KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        finish_and_claim(con, [RESULT], "w", NOW, 1, 1000, fault)
    assert not con.in_transaction
    assert [row["status"] for row in committed(queue_path)[0]] == ["done", "leased"]


def test_finish_and_claim_under_a_reader(con: sqlite3.Connection, queue_path: Path) -> None:
    """A commit that a reader prevents is rolled back and reported."""
    put_leased(con)
    put_pending(con, id="next")
    before = all_jobs(con)
    without_waiting(con)

    with reading(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        finish_and_claim(con, [RESULT], "w", NOW, 1)
    assert not con.in_transaction
    assert committed(queue_path)[0] == before


@many_pasts
@given(seed=seeds, max_jobs=st.integers(1, 6), number=st.integers(0, 6), data=st.data())
def test_finish_and_claim_is_finish_many_and_claim_many(
    seed: int, max_jobs: int, number: int, data: st.DataObject
) -> None:
    """Statuses, tickets and rows are those of the two calls at the same instant."""
    with equal_queues(seed) as (one, other, history):
        held, again = (claim_many(con, "w", history.now_ms, 6, 600) for con in (one, other))
        assert held == again
        parts = st.tuples(
            st.sampled_from(["ok", "retry", "permanent"]), st.sampled_from([0, 0, 100])
        )
        results = [(ticket, *data.draw(parts)) for ticket in held[:number]]
        statuses = finish_many(other, results, history.now_ms)
        tickets = claim_many(other, "x", history.now_ms, max_jobs, 50)

        assert finish_and_claim(one, results, "x", history.now_ms, max_jobs, 50) == (
            statuses,
            tickets,
        )
