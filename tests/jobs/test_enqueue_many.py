"""enqueue_many: as many enqueues in one transaction, an answer for each."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lease import WIDE, Conflict, jobs
from lease.jobs import enqueue_many
from tests.support.batches import equal_queues, many_pasts, seeds, sequences, statements, untouched
from tests.support.histories import IDS
from tests.support.queue import (
    ERRORS,
    NOW,
    Hook,
    all_jobs,
    committed,
    failing_at,
    put_pending,
    reading,
    unchanged,
    without_waiting,
)
from tests.support.refused import IDENTIFIERS, instants, integers, mappings, table, within

EVENT = {"id": "job-1", "qty": 7}
BATCH = [{"id": "job-1", "qty": 7}, {"id": "job-2", "qty": 8}]
GOOD = {"events": BATCH, "now_ms": NOW, "ttl_ms": 1000, "max_attempts": 3}

UNUSABLE = table(
    events=sequences([EVENT]),
    now_ms=instants(WIDE),
    ttl_ms=integers(1, WIDE.max_ttl_ms),
    max_attempts=integers(1, WIDE.max_attempts),
)
UNUSABLE_EVENTS = [
    *mappings(EVENT),
    *within(EVENT, "id", IDENTIFIERS),
    *within(EVENT, "qty", integers(1, 1000)),
]


@pytest.mark.parametrize(("argument", "value"), UNUSABLE)
def test_enqueue_many_refuses(argument: str, value: object) -> None:
    """Input of another type or range is a ValueError before anything changes."""
    hook = Hook()

    with untouched(put_pending) as con, pytest.raises(ValueError, match=f"^{argument} must be"):
        enqueue_many(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


@pytest.mark.parametrize("event", UNUSABLE_EVENTS)
def test_enqueue_many_names_the_unusable_event(event: object) -> None:
    """One unusable event refuses the batch, and the message says which it is."""
    with (
        untouched(put_pending) as con,
        pytest.raises(ValueError, match=r"^events\[2\]: .* must be"),
    ):
        enqueue_many(con, [*BATCH, event], NOW, 1000)


def test_enqueue_many_records_in_order(con: sqlite3.Connection) -> None:
    """Each new event becomes a job as `enqueue` makes it, in the order given."""
    events = [{"id": name, "qty": 1} for name in ("z", "a", "m")]

    assert enqueue_many(con, events, NOW, 1000, 2) == ["new", "new", "new"]
    assert [(row["seq"], row["id"]) for row in all_jobs(con)] == [(1, "z"), (2, "a"), (3, "m")]
    assert all_jobs(con)[0] == {
        "seq": 1,
        "id": "z",
        "qty": 1,
        "status": "pending",
        "attempts": 0,
        "max_attempts": 2,
        "token": 0,
        "available_at": NOW,
        "deadline": NOW + 1000,
        "owner": None,
        "lease_until": None,
        "reason": None,
    }
    assert events == [{"id": name, "qty": 1} for name in ("z", "a", "m")]


def test_enqueue_many_judges_each_event(con: sqlite3.Connection) -> None:
    """What is recorded, and what stands before in the batch, decides on each event alone."""
    before = put_pending(con)
    events = [("job-1", 7), ("job-1", 8), ("x", 1), ("x", 2), ("x", 1), ("y", 3)]

    assert enqueue_many(con, [{"id": name, "qty": qty} for name, qty in events], NOW, 99) == [
        "duplicate",
        "conflict",
        "new",
        "conflict",
        "duplicate",
        "new",
    ]
    assert [before, 1, 3] == [all_jobs(con)[0], *(row["qty"] for row in all_jobs(con)[1:])]


@pytest.mark.parametrize("events", [[], (), [EVENT], [EVENT | {"qty": 8}, EVENT]])
def test_enqueue_many_of_nothing_new(
    con: sqlite3.Connection, queue_path: Path, events: Any
) -> None:
    """Without a new event no hook is called and no byte changes."""
    put_pending(con)
    hook = Hook()

    with unchanged(con, queue_path):
        found = enqueue_many(con, events, NOW, 1000, fault=hook)
    assert found == ["conflict", "duplicate"][2 - len(events) :]
    assert hook == []


def test_enqueue_many_accepts_the_largest_batch(con: sqlite3.Connection) -> None:
    """Ten thousand events fit into one transaction."""
    events = [{"id": f"job-{number}", "qty": 1} for number in range(10_000)]

    assert enqueue_many(con, events, NOW, 1000) == ["new"] * 10_000
    assert [row["seq"] for row in all_jobs(con)] == list(range(1, 10_001))


@pytest.mark.parametrize("number", [1, 200])
def test_enqueue_many_takes_any_number_by_the_same_statements(
    con: sqlite3.Connection, number: int
) -> None:
    """However many events, they are looked up at once and recorded at once."""
    events = [{"id": f"job-{each}", "qty": 1} for each in range(number)]
    run = statements(con, lambda: enqueue_many(con, events, NOW, 1000))

    assert run == ["BEGIN IMMEDIATE", "enqueue_many_find", "enqueue_many_insert", "COMMIT"]


def test_enqueue_many_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """The first hook comes before the only commit, the second after it."""
    seen = []

    def hook(boundary: str) -> None:
        seen.append((boundary, len(committed(queue_path)[0]), con.in_transaction))

    enqueue_many(con, BATCH, NOW, 1000, fault=hook)
    assert seen == [("after-enqueue", 0, True), ("after-commit", 2, False)]


@pytest.mark.parametrize("kind", ERRORS)
def test_enqueue_many_rolls_back_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """An error before the commit takes the whole batch back and comes out as it is."""
    error = kind("boom")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        enqueue_many(con, BATCH, NOW, 1000, fault=failing_at("after-enqueue", error))
    assert caught.value is error


def test_enqueue_many_keeps_the_commit_of_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """An error after the commit leaves the batch recorded."""
    with pytest.raises(KeyboardInterrupt):
        enqueue_many(con, BATCH, NOW, 1000, fault=failing_at("after-commit", KeyboardInterrupt()))
    assert not con.in_transaction
    assert len(committed(queue_path)[0]) == 2


def test_enqueue_many_under_a_reader(con: sqlite3.Connection, queue_path: Path) -> None:
    """A commit that a reader prevents is rolled back and reported."""
    without_waiting(con)

    with reading(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        enqueue_many(con, BATCH, NOW, 1000)
    assert not con.in_transaction
    assert committed(queue_path) == ([], [])


@many_pasts
@given(
    seed=seeds,
    events=st.lists(
        st.fixed_dictionaries({"id": st.sampled_from(IDS), "qty": st.sampled_from([1, 1, 2])}),
        max_size=20,
    ),
)
def test_enqueue_many_is_that_many_enqueues(seed: int, events: list[dict[str, Any]]) -> None:
    """Event by event the answer and the rows are those of single calls in order."""
    with equal_queues(seed) as (one, other, history):
        singly = []
        for event in events:
            try:
                made = jobs.enqueue(other, event, history.now_ms, 500, 2)
                singly.append("new" if made else "duplicate")
            except Conflict:
                singly.append("conflict")

        assert enqueue_many(one, events, history.now_ms, 500, 2) == singly
