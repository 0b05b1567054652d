"""finish: who may settle a job, what it becomes, the hooks, and what is refused."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease import Limits
from lease.worker import claim, finish
from tests.support.queue import (
    DEADLINE,
    ERRORS,
    NOW,
    Face,
    Hook,
    all_jobs,
    audits,
    committed,
    each_face,
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
from tests.support.refused import (
    BadRepr,
    Cases,
    Outcome,
    Str,
    for_each_face,
    instants,
    integers,
    table,
    tickets,
)

TICKET = {
    "id": "job-1",
    "qty": 7,
    "owner": "worker-a",
    "token": 4,
    "attempt": 1,
    "lease_until": NOW + 1000,
}
GOOD = {"ticket": TICKET, "outcome": "ok", "now_ms": NOW, "delay_ms": 0}
OUTCOMES = ["ok", "retry", "permanent"]


def unusable(limits: Limits) -> Cases:
    return table(
        ticket=tickets(TICKET, limits),
        outcome=[
            pytest.param("", id="empty"),
            pytest.param("OK", id="upper-case"),
            pytest.param("ok\n", id="trailing-newline"),
            pytest.param("stale", id="no-outcome"),
            pytest.param("done", id="a-status"),
            pytest.param("\uff4f\uff4b", id="fullwidth"),
            pytest.param(Str("ok"), id="str-subclass"),
            pytest.param(Outcome.OK, id="enum"),
            pytest.param(b"ok", id="bytes"),
            pytest.param(True, id="bool"),
            pytest.param(None, id="none"),
            pytest.param(["ok"], id="list"),
            pytest.param(BadRepr(), id="bad-repr"),
        ],
        now_ms=instants(limits),
        delay_ms=integers(0, limits.max_delay_ms),
    )


@pytest.mark.parametrize(("face", "argument", "value"), for_each_face(unusable))
def test_finish_refuses(
    con: sqlite3.Connection, queue_path: Path, face: Face, argument: str, value: object
) -> None:
    """Input of another type or range is a ValueError that changes neither file nor input."""
    put_leased(con)
    before = dict(value) if isinstance(value, dict) else None
    hook = Hook()

    with unchanged(con, queue_path), pytest.raises(ValueError, match=f"{argument}.* must be"):
        face.verbs.finish(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []
    assert before is None or before == value


def test_finish_refuses_the_delay_of_any_outcome(con: sqlite3.Connection) -> None:
    """A delay is checked even where no retry will use it, and so for a stale ticket."""
    with pytest.raises(ValueError, match="delay_ms"):
        finish(con, TICKET, "permanent", NOW, 60_001)


@each_face
def test_finish_accepts_the_low_ends(con: sqlite3.Connection, face: Face) -> None:
    """One is a quantity, a token, an attempt and a lease end; zero is an instant and a delay."""
    row = put_leased(con, id="a", qty=1, owner="w", token=1, attempts=1, lease_until=1)

    assert face.verbs.finish(con, ticket_of(row), "retry", 0, 0) == "pending"
    assert job(con, "a")["available_at"] == 0


@each_face
def test_finish_accepts_the_high_ends(con: sqlite3.Connection, face: Face) -> None:
    """The largest quantity, token, attempt, lease end, instant and delay are in range."""
    now_ms, delay_ms, attempts = (
        face.limits.max_now_ms,
        face.limits.max_delay_ms,
        face.limits.max_attempts,
    )
    ends = {"qty": 1000, "token": 10**15, "lease_until": 10**15, "deadline": 10**15 + 1}
    row = put_leased(con, **ends, attempts=attempts, max_attempts=attempts + 1)

    assert face.verbs.finish(con, ticket_of(row), "retry", now_ms, delay_ms) == "pending"
    assert job(con)["available_at"] == now_ms + delay_ms


SETTLED = [
    pytest.param("ok", 0, {}, "done", None, id="ok"),
    pytest.param("ok", 60_000, {}, "done", None, id="ok-with-delay"),
    pytest.param("ok", 0, {"attempts": 3}, "done", None, id="ok-on-last-attempt"),
    pytest.param("ok", 0, {"reason": "retry"}, "done", None, id="ok-clears-a-reason"),
    pytest.param("permanent", 0, {}, "dead", "permanent", id="permanent"),
    pytest.param("permanent", 60_000, {}, "dead", "permanent", id="permanent-with-delay"),
    pytest.param("permanent", 0, {"attempts": 3}, "dead", "permanent", id="permanent-on-last"),
    pytest.param("retry", 0, {}, "pending", "retry", id="retry-at-once"),
    pytest.param("retry", 250, {}, "pending", "retry", id="retry"),
    pytest.param("retry", 250, {"attempts": 2}, "pending", "retry", id="retry-one-attempt-left"),
    pytest.param("retry", 250, {"attempts": 3}, "dead", "exhausted", id="retry-on-last-attempt"),
    pytest.param("retry", 250, {"attempts": 4}, "dead", "exhausted", id="retry-beyond-the-budget"),
    pytest.param(
        "retry", 1999, {"deadline": NOW + 2000}, "pending", "retry", id="retry-just-before-deadline"
    ),
    pytest.param(
        "retry", 2000, {"deadline": NOW + 2000}, "dead", "deadline", id="retry-at-deadline"
    ),
    pytest.param(
        "retry", 2001, {"deadline": NOW + 2000}, "dead", "deadline", id="retry-after-deadline"
    ),
    pytest.param(
        "retry",
        2000,
        {"deadline": NOW + 2000, "attempts": 3},
        "dead",
        "exhausted",
        id="retry-both-is-exhausted",
    ),
]


@pytest.mark.parametrize(("outcome", "delay_ms", "columns", "status", "reason"), SETTLED)
def test_finish_settles(
    con: sqlite3.Connection,
    queue_path: Path,
    outcome: Any,
    delay_ms: int,
    columns: dict[str, Any],
    status: str,
    reason: str | None,
) -> None:
    """The row gets its status, reason and availability; nobody holds it; the rest is kept."""
    before = put_leased(con, **columns)

    assert finish(con, ticket_of(before), outcome, NOW, delay_ms) == status
    settled = before | {
        "status": status,
        "reason": reason,
        "available_at": NOW + delay_ms if status == "pending" else NOW,
        "owner": None,
        "lease_until": None,
    }
    assert not con.in_transaction
    assert committed(queue_path) == ([settled], [])


def test_finish_returns_an_exact_str(con: sqlite3.Connection) -> None:
    """The new status is a plain str."""
    assert type(finish(con, ticket_of(put_leased(con)), "ok", NOW)) is str


def test_finish_retries_at_once_unless_told(con: sqlite3.Connection) -> None:
    """The delay is 0 by default."""
    finish(con, ticket_of(put_leased(con)), "retry", NOW)

    assert job(con)["available_at"] == NOW


def test_finish_changes_one_job(con: sqlite3.Connection) -> None:
    """Other jobs of the same worker, token and lease stay as they are, and no audit is made."""
    others = [put_leased(con, id=name) for name in ("a", "b")]
    finish(con, ticket_of(put_leased(con)), "ok", NOW)

    assert others == all_jobs(con)[:2]
    assert audits(con) == []


STALE = [
    pytest.param(put_leased, {}, {"id": "job-2"}, id="no-such-job"),
    pytest.param(put_leased, {}, {"id": "JOB-1"}, id="id-in-another-case"),
    pytest.param(put_leased, {}, {"qty": 6}, id="smaller-qty"),
    pytest.param(put_leased, {}, {"qty": 8}, id="larger-qty"),
    pytest.param(put_leased, {}, {"owner": "worker-b"}, id="another-owner"),
    pytest.param(put_leased, {}, {"owner": "WORKER-A"}, id="owner-in-another-case"),
    pytest.param(put_leased, {}, {"token": 3}, id="older-token"),
    pytest.param(put_leased, {}, {"token": 5}, id="newer-token"),
    pytest.param(put_leased, {"attempts": 2}, {"attempt": 1}, id="smaller-attempt"),
    pytest.param(put_leased, {}, {"attempt": 2}, id="larger-attempt"),
    pytest.param(put_leased, {}, {"lease_until": NOW + 999}, id="earlier-lease-end"),
    pytest.param(put_leased, {}, {"lease_until": NOW + 1001}, id="later-lease-end"),
    pytest.param(put_leased, {"lease_until": NOW}, {"lease_until": NOW}, id="lease-ends-now"),
    pytest.param(
        put_leased, {"lease_until": NOW - 1}, {"lease_until": NOW - 1}, id="lease-ended-before"
    ),
    pytest.param(put_leased, {"deadline": NOW}, {}, id="deadline-now"),
    pytest.param(put_leased, {"deadline": NOW - 1}, {}, id="deadline-before"),
    *(
        pytest.param(
            put,
            {key: TICKET[key] for key in ("owner", "lease_until", "token")} | columns,
            {},
            id=name,
        )
        for put, columns, name in (
            (put_pending, {"attempts": 1}, "pending"),
            (put_pending, {"attempts": 1, "status": "done"}, "done"),
            (put_dead, {"attempts": 1, "deadline": DEADLINE}, "dead"),
        )
    ),
]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize(("put", "columns", "difference"), STALE)
def test_finish_of_a_stale_ticket(
    con: sqlite3.Connection,
    queue_path: Path,
    put: Any,
    columns: dict[str, Any],
    difference: dict[str, Any],
    outcome: Any,
) -> None:
    """A ticket that is not the job's own, or comes too late, is False and changes no byte."""
    put(con, **columns)
    hook = Hook()

    with unchanged(con, queue_path):
        assert finish(con, TICKET | difference, outcome, NOW, 0, hook) is False
    assert hook == []


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"lease_until": NOW + 1}, id="lease-ends-next"),
        pytest.param({"deadline": NOW + 1}, id="deadline-next"),
    ],
)
def test_finish_holds_to_the_last_millisecond(
    con: sqlite3.Connection, columns: dict[str, Any]
) -> None:
    """The ticket is good until just before its lease and the deadline end."""
    row = put_leased(con, **columns)

    assert finish(con, ticket_of(row), "ok", NOW) == "done"


def test_finish_of_an_empty_queue(con: sqlite3.Connection) -> None:
    """A job that does not exist is False, no error."""
    assert finish(con, TICKET, "ok", NOW) is False


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_finish_twice(con: sqlite3.Connection, queue_path: Path, outcome: Any) -> None:
    """A ticket settles its job once."""
    put_pending(con)
    ticket = claim(con, "worker-a", NOW)
    finish(con, ticket, outcome, NOW)

    with unchanged(con, queue_path):
        assert finish(con, ticket, outcome, NOW) is False


def test_finish_after_a_takeover(con: sqlite3.Connection) -> None:
    """The earlier holder's ticket is stale even under the same name; the new one settles."""
    put_pending(con)
    stale = claim(con, "worker-a", NOW, 1000)
    current = claim(con, "worker-a", NOW + 1000, 1000)

    assert finish(con, stale, "permanent", NOW + 1000) is False
    assert job(con)["token"] == current["token"]
    assert finish(con, current, "ok", NOW + 1000) == "done"


def test_finish_neither_changes_nor_keeps_the_ticket(con: sqlite3.Connection) -> None:
    """The caller's dict stays as it was, in its own order."""
    ticket = dict(reversed(ticket_of(put_leased(con)).items()))
    before = list(ticket.items())

    assert finish(con, ticket, "retry", NOW, 10) == "pending"
    assert before == list(ticket.items())


def test_finish_of_a_retry_can_be_claimed_after_its_delay(con: sqlite3.Connection) -> None:
    """A retry waits for exactly its delay, and keeps its attempts and its token."""
    row = put_leased(con)
    finish(con, ticket_of(row), "retry", NOW, 250)

    assert claim(con, "worker-b", NOW + 249) is None
    ticket = claim(con, "worker-b", NOW + 250)
    assert (ticket["token"], ticket["attempt"]) == (5, 2)


@pytest.mark.parametrize(
    ("outcome", "status"), [("ok", "done"), ("retry", "pending"), ("permanent", "dead")]
)
def test_finish_hooks(con: sqlite3.Connection, queue_path: Path, outcome: Any, status: str) -> None:
    """The first hook sees a change that others do not; the second is after everybody's view."""
    row = put_leased(con)
    seen = []

    def hook(boundary: str) -> None:
        (other,), _ = committed(queue_path)
        seen.append((boundary, con.in_transaction, job(con)["status"], other["status"]))

    finish(con, ticket_of(row), outcome, NOW, 0, hook)
    assert seen == [
        ("after-finish", True, status, "leased"),
        ("after-commit", False, status, status),
    ]


def test_finish_calls_a_hook_that_is_false(con: sqlite3.Connection) -> None:
    """Only None means no hook; a callable that is false by its length is one."""
    hook = Hook()
    finish(con, ticket_of(put_leased(con)), "ok", NOW, 0, hook)

    assert hook == ["after-finish", "after-commit"]


@pytest.mark.parametrize("kind", ERRORS)
def test_finish_hook_failing_before_the_commit(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """The job is leased as before, by the same ticket, and the hook's own error comes out."""
    row = put_leased(con)
    error = kind("told to")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        finish(con, ticket_of(row), "ok", NOW, 0, failing_at("after-finish", error))
    assert caught.value is error
    assert finish(con, ticket_of(row), "ok", NOW) == "done"


@pytest.mark.parametrize("kind", ERRORS)
def test_finish_hook_failing_after_the_commit(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """The job stays settled, nothing is open, and the hook's own error comes out."""
    row = put_leased(con)
    error = kind("told to")

    with pytest.raises(kind) as caught:
        finish(con, ticket_of(row), "ok", NOW, 0, failing_at("after-commit", error))
    assert caught.value is error
    assert not con.in_transaction
    (settled,), _ = committed(queue_path)
    assert settled["status"] == "done"


def test_finish_under_a_reader_is_rolled_back(con: sqlite3.Connection, queue_path: Path) -> None:
    """A COMMIT that fails because somebody reads leaves the lease, which can then be settled."""
    row = put_leased(con)
    without_waiting(con)
    hook = Hook()

    with (
        reading(queue_path),
        unchanged(con, queue_path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        finish(con, ticket_of(row), "ok", NOW, 0, hook)
    assert hook == ["after-finish"]
    assert row == job(con)
    assert finish(con, ticket_of(row), "ok", NOW) == "done"


def test_finish_under_a_writer_is_refused(con: sqlite3.Connection, queue_path: Path) -> None:
    """Whether a ticket is current is decided under the write lock, never before it."""
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        finish(con, TICKET, "ok", NOW)
    assert not con.in_transaction


def test_finish_refuses_a_callers_transaction(con: sqlite3.Connection) -> None:
    """A transaction of the caller's is neither committed nor rolled back."""
    con.execute("BEGIN")
    row = put_leased(con)

    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        finish(con, ticket_of(row), "ok", NOW)
    assert con.in_transaction
    assert row == job(con)
    con.execute("ROLLBACK")
    assert all_jobs(con) == []
