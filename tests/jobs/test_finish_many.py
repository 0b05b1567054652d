"""finish_many: as many finishes in one transaction, a status for each."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lease import WIDE, jobs
from lease.jobs import claim_many, enqueue_many, finish_many, renew
from tests.support.batches import equal_queues, many_pasts, seeds, sequences, statements, untouched
from tests.support.queue import (
    ERRORS,
    NOW,
    Hook,
    all_jobs,
    committed,
    failing_at,
    put_leased,
    reading,
    ticket_of,
    unchanged,
    without_waiting,
)
from tests.support.refused import IDENTIFIERS, instants, integers, mappings, table, within

TICKET = {
    "id": "job-1",
    "qty": 7,
    "owner": "worker-a",
    "token": 4,
    "attempt": 1,
    "lease_until": NOW + 1000,
}
RESULT = (TICKET, "ok", 0)

UNUSABLE = table(results=sequences([RESULT]), now_ms=instants(WIDE))
UNUSABLE_RESULTS = [
    pytest.param(None, id="none"),
    pytest.param(TICKET, id="just-a-ticket"),
    pytest.param((TICKET, "ok"), id="two-parts"),
    pytest.param((TICKET, "ok", 0, 0), id="four-parts"),
    pytest.param([TICKET, "ok", 0], id="list"),
    *(pytest.param((case.values[0], "ok", 0), id=f"ticket-{case.id}") for case in mappings(TICKET)),
    *(
        pytest.param((case.values[0], "ok", 0), id=f"ticket-{case.id}")
        for case in within(TICKET, "id", IDENTIFIERS)
    ),
    pytest.param((TICKET, "OK", 0), id="outcome"),
    *(
        pytest.param((TICKET, "ok", *case.values), id=f"delay-{case.id}")
        for case in integers(0, WIDE.max_delay_ms)
    ),
]


@pytest.mark.parametrize(("argument", "value"), UNUSABLE)
def test_finish_many_refuses(argument: str, value: object) -> None:
    """Input of another type or range is a ValueError before anything changes."""
    hook = Hook()
    good = {"results": [RESULT], "now_ms": NOW}

    with untouched(put_leased) as con, pytest.raises(ValueError, match=f"^{argument} must be"):
        finish_many(con, **(good | {argument: value}), fault=hook)
    assert hook == []


@pytest.mark.parametrize("result", UNUSABLE_RESULTS)
def test_finish_many_names_the_unusable_result(result: object) -> None:
    """One unusable result refuses the batch, and the message says which it is."""
    with untouched(put_leased) as con, pytest.raises(ValueError, match=r"^results\[1\]: .*must be"):
        finish_many(con, [RESULT, result], NOW)


def test_finish_many_judges_each_ticket(con: sqlite3.Connection) -> None:
    """Every status and reason there is, in the order given, and a stale ticket holds up none."""
    rows = [put_leased(con, id=f"job-{number}") for number in range(5)]
    last = put_leased(con, id="last-attempt", attempts=3)
    ended = put_leased(con, id="ended", lease_until=NOW)
    tickets = [ticket_of(row) for row in (*rows, last, ended)]
    outcomes = ["ok", "permanent", "retry", "retry", "ok", "retry", "ok"]
    delays = [9, 9, 10, 90_000, 0, 0, 0]
    tickets[4] = tickets[4] | {"token": 3}

    assert finish_many(con, list(zip(tickets, outcomes, delays, strict=True)), NOW) == [
        "done",
        "dead",
        "pending",
        "dead",
        False,
        "dead",
        False,
    ]
    assert [(row["status"], row["reason"], row["available_at"]) for row in all_jobs(con)] == [
        ("done", None, NOW),
        ("dead", "permanent", NOW),
        ("pending", "retry", NOW + 10),
        ("dead", "deadline", NOW),
        ("leased", None, NOW - 500),
        ("dead", "exhausted", NOW),
        ("leased", None, NOW - 500),
    ]


def test_finish_many_takes_a_ticket_once(con: sqlite3.Connection) -> None:
    """The first of two equal tickets counts, whatever the other one says."""
    row = put_leased(con)
    results = [(ticket_of(row), "permanent", 0), (ticket_of(row), "ok", 0)]

    assert finish_many(con, results, NOW) == ["dead", False]
    assert all_jobs(con)[0]["reason"] == "permanent"


def test_finish_many_knows_a_renewed_ticket_from_the_old(con: sqlite3.Connection) -> None:
    """Tickets of one token that differ in the lease end alone are not mistaken for each other."""
    old = ticket_of(put_leased(con))
    new = renew(con, old, NOW, 3000)

    assert finish_many(con, [(old, "permanent", 0), (new, "ok", 0)], NOW) == [False, "done"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_finish_many_of_stale_tickets(
    con: sqlite3.Connection, queue_path: Path, number: int
) -> None:
    """Where every ticket is stale no hook is called and no byte changes."""
    put_leased(con, token=5)
    hook = Hook()

    with unchanged(con, queue_path):
        assert finish_many(con, [RESULT] * number, NOW, hook) == [False] * number
    assert hook == []


def test_finish_many_takes_any_number_by_the_same_statements(con: sqlite3.Connection) -> None:
    """However many results, they are two statements and one commit; one is one statement."""
    events = [{"id": f"job-{number}", "qty": 1} for number in range(201)]
    enqueue_many(con, events, NOW, 60_000)
    one, *rest = [(each, "ok", 0) for each in claim_many(con, "w", NOW, 201)]

    assert statements(con, lambda: finish_many(con, [one], NOW)) == [
        "BEGIN IMMEDIATE",
        "finish_settle",
        "COMMIT",
    ]
    assert statements(con, lambda: finish_many(con, rest, NOW)) == [
        "BEGIN IMMEDIATE",
        "finish_many_find",
        "finish_many_settle",
        "COMMIT",
    ]


def test_finish_many_accepts_the_largest_batch(con: sqlite3.Connection) -> None:
    """Ten thousand results fit into one transaction."""
    events = [{"id": f"job-{number}", "qty": 1} for number in range(10_000)]
    enqueue_many(con, events, NOW, 60_000)
    results = [(each, "ok", 0) for each in claim_many(con, "w", NOW, 10_000)]

    assert finish_many(con, results, NOW) == ["done"] * 10_000
    assert {row["status"] for row in all_jobs(con)} == {"done"}


def test_finish_many_leaves_its_input_alone(con: sqlite3.Connection) -> None:
    """Neither the batch nor a ticket in it is changed."""
    results = [(dict(TICKET), "retry", 5), (dict(TICKET), "ok", 0)]
    put_leased(con)
    finish_many(con, results, NOW)

    assert results == [(TICKET, "retry", 5), (TICKET, "ok", 0)]


def test_finish_many_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """The first hook comes before the only commit, the second after it."""
    tickets = [ticket_of(put_leased(con, id=name)) for name in ("a", "b")]
    seen = []

    def hook(boundary: str) -> None:
        states = [row["status"] for row in committed(queue_path)[0]]
        seen.append((boundary, states, con.in_transaction))

    finish_many(con, [(each, "ok", 0) for each in tickets], NOW, hook)
    assert seen == [
        ("after-finish", ["leased", "leased"], True),
        ("after-commit", ["done", "done"], False),
    ]


@pytest.mark.parametrize("kind", ERRORS)
def test_finish_many_rolls_back_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """An error before the commit takes the whole batch back and comes out as it is."""
    put_leased(con)
    error = kind("boom")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        finish_many(con, [RESULT], NOW, failing_at("after-finish", error))
    assert caught.value is error


def test_finish_many_keeps_the_commit_of_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """An error after the commit leaves the jobs settled."""
    put_leased(con)

    with pytest.raises(KeyboardInterrupt):
        finish_many(con, [RESULT], NOW, failing_at("after-commit", KeyboardInterrupt()))
    assert not con.in_transaction
    assert committed(queue_path)[0][0]["status"] == "done"


def test_finish_many_under_a_reader(con: sqlite3.Connection, queue_path: Path) -> None:
    """A commit that a reader prevents is rolled back and reported."""
    row = put_leased(con)
    without_waiting(con)

    with reading(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        finish_many(con, [RESULT], NOW)
    assert not con.in_transaction
    assert committed(queue_path)[0] == [row]


@st.composite
def drawn_results(draw: st.DrawFn, tickets: list[Any]) -> list[Any]:
    """Draw results for some tickets, repeated and altered ones among them."""
    if not tickets:
        return []
    altered = st.sampled_from([{}, {}, {}, {"token": 1}, {"owner": "x"}, {"lease_until": 5}])
    ticket = st.builds(lambda held, change: held | change, st.sampled_from(tickets), altered)
    outcome = st.sampled_from(["ok", "retry", "permanent"])
    return draw(
        st.lists(st.tuples(ticket, outcome, st.sampled_from([0, 1, 100, 3000])), max_size=12)
    )


@many_pasts
@given(seed=seeds, data=st.data())
def test_finish_many_is_that_many_finishes(seed: int, data: st.DataObject) -> None:
    """Result by result the status and the rows are those of single calls in order."""
    with equal_queues(seed) as (one, other, history):
        held = claim_many(one, "w", history.now_ms, 6, 600)
        assert held == claim_many(other, "w", history.now_ms, 6, 600)
        results = data.draw(drawn_results([*held, *history.tickets[-6:]]))
        singly = [jobs.finish(other, *parts[:2], history.now_ms, parts[2]) for parts in results]

        assert finish_many(one, results, history.now_ms) == singly
