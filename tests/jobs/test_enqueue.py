"""enqueue: what a new job looks like, what a second intake keeps, and what is refused."""

import sqlite3
from pathlib import Path

import pytest

from lease import Conflict, Limits
from lease.worker import claim, enqueue, finish
from tests.support.queue import (
    DEADLINE,
    NOW,
    Face,
    all_jobs,
    committed,
    each_face,
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
from tests.support.refused import (
    GOOD_IDENTIFIERS,
    IDENTIFIERS,
    Cases,
    for_each_face,
    instants,
    integers,
    mappings,
    table,
    within,
)

EVENT = {"id": "job-1", "qty": 7}
GOOD = {"event": EVENT, "now_ms": NOW, "ttl_ms": 1000, "max_attempts": 3}


def unusable(limits: Limits) -> Cases:
    return table(
        event=[
            *mappings(EVENT),
            *within(EVENT, "id", IDENTIFIERS),
            *within(EVENT, "qty", integers(1, 1000)),
        ],
        now_ms=instants(limits),
        ttl_ms=integers(1, limits.max_ttl_ms),
        max_attempts=integers(1, limits.max_attempts),
    )


@pytest.mark.parametrize(("face", "argument", "value"), for_each_face(unusable))
def test_enqueue_refuses(
    con: sqlite3.Connection, queue_path: Path, face: Face, argument: str, value: object
) -> None:
    """Input of another type or range is a ValueError that changes neither file nor input."""
    before = dict(value) if isinstance(value, dict) else None

    named = "(event|id|qty)" if argument == "event" else argument
    with unchanged(con, queue_path), pytest.raises(ValueError, match=f"^{named} must be"):
        face.verbs.enqueue(con, **(GOOD | {argument: value}))
    assert before is None or before == value


def test_enqueue_refuses_input_before_it_looks_for_the_id(con: sqlite3.Connection) -> None:
    """Unusable input for a recorded id is a ValueError, neither False nor a Conflict."""
    put_pending(con)

    with pytest.raises(ValueError, match="ttl_ms"):
        enqueue(con, EVENT, NOW, 0)
    with pytest.raises(ValueError, match="max_attempts"):
        enqueue(con, EVENT | {"qty": 8}, NOW, 1, 17)


@each_face
def test_enqueue_accepts_the_low_ends(con: sqlite3.Connection, face: Face) -> None:
    """Zero is an instant; one is a quantity, a time to live and a budget."""
    assert face.verbs.enqueue(con, {"id": "a", "qty": 1}, 0, 1, 1) is True

    row = job(con, "a")
    assert (row["qty"], row["available_at"], row["deadline"], row["max_attempts"]) == (1, 0, 1, 1)


@each_face
def test_enqueue_accepts_the_high_ends(con: sqlite3.Connection, face: Face) -> None:
    """The largest instant, time to live, budget and quantity belong to their ranges."""
    now_ms, ttl_ms, _lease, _delay, attempts = face.limits
    assert face.verbs.enqueue(con, {"id": "a", "qty": 1000}, now_ms, ttl_ms, attempts) is True

    row = job(con, "a")
    assert (1000, now_ms, 10**15) == (row["qty"], row["available_at"], row["deadline"])
    assert attempts == row["max_attempts"]


@pytest.mark.parametrize("job_id", GOOD_IDENTIFIERS)
def test_enqueue_accepts_an_identifier(con: sqlite3.Connection, job_id: str) -> None:
    """1 to 64 ASCII letters, digits, underscores and hyphens are an identifier."""
    assert enqueue(con, {"id": job_id, "qty": 1}, NOW, 1000) is True

    assert [job_id] == [row["id"] for row in all_jobs(con)]


def test_enqueue_records_a_new_job(con: sqlite3.Connection) -> None:
    """A new job is pending, untried, available now and due after its time to live."""
    assert enqueue(con, EVENT, NOW, 40_000, 5) is True

    assert all_jobs(con) == [
        {
            "seq": 1,
            "id": "job-1",
            "qty": 7,
            "status": "pending",
            "attempts": 0,
            "max_attempts": 5,
            "token": 0,
            "available_at": NOW,
            "deadline": DEADLINE,
            "owner": None,
            "lease_until": None,
            "reason": None,
        }
    ]


def test_enqueue_allows_three_attempts_unless_told(con: sqlite3.Connection) -> None:
    """The attempt budget is 3 by default."""
    enqueue(con, EVENT, NOW, 1000)

    assert job(con)["max_attempts"] == 3


def test_enqueue_numbers_jobs_in_the_order_of_intake(con: sqlite3.Connection) -> None:
    """Each new job gets the next seq, with none used up by duplicates or conflicts."""
    enqueue(con, {"id": "b", "qty": 1}, NOW, 1000)
    enqueue(con, {"id": "b", "qty": 1}, NOW, 1000)
    with pytest.raises(Conflict):
        enqueue(con, {"id": "b", "qty": 2}, NOW, 1000)
    enqueue(con, {"id": "a", "qty": 1}, NOW, 1000)

    assert [(row["seq"], row["id"]) for row in all_jobs(con)] == [(1, "b"), (2, "a")]


def test_enqueue_tells_ids_apart_by_case(con: sqlite3.Connection) -> None:
    """Ids that differ in case alone are two jobs."""
    assert enqueue(con, {"id": "a", "qty": 1}, NOW, 1000) is True
    assert enqueue(con, {"id": "A", "qty": 2}, NOW, 1000) is True


def done(con: sqlite3.Connection) -> None:
    finish(con, ticket_of(put_leased(con)), "ok", NOW)


STATES = [
    pytest.param(put_pending, id="pending"),
    pytest.param(put_leased, id="leased"),
    pytest.param(done, id="done"),
    pytest.param(put_dead, id="dead"),
]


@pytest.mark.parametrize("put", STATES)
def test_enqueue_of_a_recorded_job_changes_nothing(
    con: sqlite3.Connection, queue_path: Path, put: object
) -> None:
    """The same id and quantity is False in every state and keeps the row, byte for byte."""
    put(con)
    before = all_jobs(con)

    with unchanged(con, queue_path):
        assert enqueue(con, {"id": "job-1", "qty": 7}, NOW + 1, 60_000, 16) is False
    assert before == all_jobs(con)


@pytest.mark.parametrize("put", STATES)
@pytest.mark.parametrize("qty", [6, 8])
def test_enqueue_of_another_quantity_conflicts(
    con: sqlite3.Connection, queue_path: Path, put: object, qty: int
) -> None:
    """The same id with another quantity is a Conflict in every state and changes nothing."""
    put(con)

    with unchanged(con, queue_path), pytest.raises(Conflict, match=f"job-1 .* qty 7, not {qty}"):
        enqueue(con, {"id": "job-1", "qty": qty}, NOW, 1000)


def test_enqueue_neither_changes_nor_keeps_the_event(con: sqlite3.Connection) -> None:
    """The caller's dict stays as it was, and what the caller does to it later changes no job."""
    event = {"qty": 7, "id": "job-1"}

    assert enqueue(con, event, NOW, 1000) is True
    assert list(event.items()) == [("qty", 7), ("id", "job-1")]
    event["qty"] = 8
    assert job(con)["qty"] == 7


def test_enqueue_is_committed_when_it_returns(con: sqlite3.Connection, queue_path: Path) -> None:
    """Another connection can claim a job as soon as its intake has returned."""
    enqueue(con, EVENT, NOW, 1000)

    assert not con.in_transaction
    assert committed(queue_path) == (all_jobs(con), [])


@pytest.mark.parametrize("qty", [pytest.param(7, id="duplicate"), pytest.param(8, id="conflict")])
def test_enqueue_decides_under_the_write_lock(
    con: sqlite3.Connection, queue_path: Path, qty: int
) -> None:
    """Even an intake that will change nothing waits for the writer, whose job it might be."""
    put_pending(con)
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        enqueue(con, EVENT | {"qty": qty}, NOW, 1000)
    assert not con.in_transaction


def test_enqueue_under_a_reader_is_rolled_back(con: sqlite3.Connection, queue_path: Path) -> None:
    """A COMMIT that fails because somebody reads leaves no job and no open transaction."""
    without_waiting(con)

    with (
        reading(queue_path),
        unchanged(con, queue_path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        enqueue(con, EVENT, NOW, 1000)
    assert all_jobs(con) == []
    assert enqueue(con, EVENT, NOW, 1000) is True


def test_enqueue_refuses_a_callers_transaction(con: sqlite3.Connection) -> None:
    """A transaction of the caller's is neither committed nor rolled back."""
    con.execute("BEGIN")
    put_pending(con, id="callers")

    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        enqueue(con, EVENT, NOW, 1000)
    assert con.in_transaction
    assert [row["id"] for row in all_jobs(con)] == ["callers"]
    con.execute("ROLLBACK")
    assert all_jobs(con) == []


def test_enqueue_leaves_a_claimable_job(con: sqlite3.Connection) -> None:
    """A job can be claimed at the very instant of its intake."""
    enqueue(con, EVENT, NOW, 1)

    assert claim(con, "worker-a", NOW) is not None
