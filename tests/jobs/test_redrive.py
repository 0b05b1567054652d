"""redrive: state and audit row together, the hooks, and what is refused."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease import Limits
from lease.worker import claim, finish, redrive
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
    GOOD_IDENTIFIERS,
    IDENTIFIERS,
    Cases,
    for_each_face,
    instants,
    integers,
    table,
)

GOOD = {"job_id": "job-1", "now_ms": NOW, "ttl_ms": 1000, "note": "receiver-fixed"}


def unusable(limits: Limits) -> Cases:
    return table(
        job_id=IDENTIFIERS,
        now_ms=instants(limits),
        ttl_ms=integers(1, limits.max_ttl_ms),
        note=IDENTIFIERS,
    )


@pytest.mark.parametrize(("face", "argument", "value"), for_each_face(unusable))
def test_redrive_refuses(
    con: sqlite3.Connection, queue_path: Path, face: Face, argument: str, value: object
) -> None:
    """Input of another type or range is a ValueError that changes nothing."""
    put_dead(con)
    hook = Hook()

    with unchanged(con, queue_path), pytest.raises(ValueError, match=f"{argument} must be"):
        face.verbs.redrive(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


@each_face
def test_redrive_accepts_the_low_ends(con: sqlite3.Connection, face: Face) -> None:
    """Zero is an instant and one millisecond is a time to live."""
    put_dead(con)

    assert face.verbs.redrive(con, "job-1", 0, 1, "n") is True
    assert (job(con)["available_at"], job(con)["deadline"]) == (0, 1)


@each_face
def test_redrive_accepts_the_high_ends(con: sqlite3.Connection, face: Face) -> None:
    """The largest instant and time to live belong to their ranges and reach 10**15."""
    put_dead(con)

    now_ms, ttl_ms = face.limits.max_now_ms, face.limits.max_ttl_ms
    assert face.verbs.redrive(con, "job-1", now_ms, ttl_ms, "n") is True
    assert (now_ms, 10**15) == (job(con)["available_at"], job(con)["deadline"])
    assert audits(con)[0]["at_ms"] == now_ms


@pytest.mark.parametrize("name", GOOD_IDENTIFIERS)
def test_redrive_accepts_an_identifier(con: sqlite3.Connection, name: str) -> None:
    """1 to 64 ASCII letters, digits, underscores and hyphens are an id and a note."""
    put_dead(con, id=name)

    assert redrive(con, name, NOW, 1000, name) is True
    assert [(name, name)] == [(audit["id"], audit["note"]) for audit in audits(con)]


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"reason": "exhausted"}, id="exhausted"),
        pytest.param({"reason": "deadline", "attempts": 0, "token": 0}, id="never-claimed"),
        pytest.param({"reason": "permanent", "attempts": 1, "deadline": DEADLINE}, id="permanent"),
        pytest.param({"owner": "worker-a", "lease_until": NOW + 1}, id="made-by-hand"),
    ],
)
def test_redrive_releases_and_records(
    con: sqlite3.Connection, queue_path: Path, columns: dict[str, Any]
) -> None:
    """A dead job gets a fresh budget and deadline; quantity, budget size and token are kept."""
    before = put_dead(con, **columns)

    assert redrive(con, "job-1", NOW, 40_000, "receiver-fixed") is True
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
        "note": "receiver-fixed",
    }
    assert not con.in_transaction
    assert committed(queue_path) == ([released], [audit])


def test_redrive_changes_one_job(con: sqlite3.Connection) -> None:
    """Other dead jobs stay dead and get no audit row."""
    others = [put_dead(con, id=name) for name in ("a", "b")]
    put_dead(con)
    redrive(con, **GOOD)

    assert others == all_jobs(con)[:2]
    assert [audit["id"] for audit in audits(con)] == ["job-1"]


def test_redrive_goes_on_from_the_token(con: sqlite3.Connection) -> None:
    """The next claim has the first attempt and a token that was never given out."""
    put_dead(con, token=5)
    redrive(con, **GOOD)

    ticket = claim(con, "worker-b", NOW)
    assert (ticket["attempt"], ticket["token"]) == (1, 6)


def test_redrive_leaves_old_tickets_stale(con: sqlite3.Connection) -> None:
    """A worker from before the quarantine cannot settle the job's new life."""
    before = put_leased(con, attempts=1, max_attempts=1)
    old = ticket_of(before)
    assert finish(con, old, "retry", NOW) == "dead"
    redrive(con, **GOOD)

    assert finish(con, old, "ok", NOW) is False
    current = claim(con, "worker-a", NOW, 1000)
    assert {**old, "token": old["token"] + 1} == current
    assert finish(con, old, "ok", NOW) is False
    assert finish(con, current, "ok", NOW) == "done"


def test_redrive_keeps_every_audit_row(con: sqlite3.Connection) -> None:
    """Each redrive adds a row with the token of its time; earlier rows stay."""
    put_pending(con, max_attempts=1)
    for step, note in enumerate(("first", "second")):
        at_ms = NOW + step * 10
        finish(con, claim(con, "worker-a", at_ms), "retry", at_ms)
        redrive(con, "job-1", at_ms, 1000, note)

    assert audits(con) == [
        {"seq": 1, "id": "job-1", "token": 1, "at_ms": NOW, "note": "first"},
        {"seq": 2, "id": "job-1", "token": 2, "at_ms": NOW + 10, "note": "second"},
    ]


@pytest.mark.parametrize(
    ("put", "columns", "message"),
    [
        pytest.param(put_dead, {"id": "job-2"}, "no job job-1", id="missing"),
        pytest.param(put_dead, {"id": "JOB-1"}, "no job job-1", id="another-case"),
        pytest.param(put_pending, {}, "job-1 is pending", id="pending"),
        pytest.param(put_pending, {"deadline": NOW}, "job-1 is pending", id="overdue"),
        pytest.param(put_leased, {}, "job-1 is leased", id="leased"),
        pytest.param(put_leased, {"lease_until": NOW}, "job-1 is leased", id="lease-ended"),
        pytest.param(put_pending, {"status": "done"}, "job-1 is done", id="done"),
    ],
)
def test_redrive_of_what_is_not_dead(
    con: sqlite3.Connection, queue_path: Path, put: Any, columns: dict[str, Any], message: str
) -> None:
    """Only a dead job can be redriven; anything else is a ValueError and changes no byte."""
    put(con, **columns)
    hook = Hook()

    with unchanged(con, queue_path), pytest.raises(ValueError, match=message):
        redrive(con, **GOOD, fault=hook)
    assert hook == []


def test_redrive_twice(con: sqlite3.Connection, queue_path: Path) -> None:
    """A redriven job is not dead any more."""
    put_dead(con)
    redrive(con, **GOOD)

    with unchanged(con, queue_path), pytest.raises(ValueError, match="is pending"):
        redrive(con, **GOOD)
    assert len(audits(con)) == 1


def test_redrive_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """Audit row, then state, then COMMIT; others see both at once, at the last hook."""
    put_dead(con)
    seen = []

    def state(jobs: list[Any], rows: list[Any]) -> tuple[str, int]:
        return jobs[0]["status"], len(rows)

    def hook(boundary: str) -> None:
        own = state(all_jobs(con), audits(con))
        seen.append((boundary, con.in_transaction, own, state(*committed(queue_path))))

    redrive(con, **GOOD, fault=hook)
    assert seen == [
        ("after-audit", True, ("dead", 1), ("dead", 0)),
        ("after-redrive", True, ("pending", 1), ("dead", 0)),
        ("after-commit", False, ("pending", 1), ("pending", 1)),
    ]


def test_redrive_calls_a_hook_that_is_false(con: sqlite3.Connection) -> None:
    """Only None means no hook; a callable that is false by its length is one."""
    put_dead(con)
    hook = Hook()
    redrive(con, **GOOD, fault=hook)

    assert hook == ["after-audit", "after-redrive", "after-commit"]


@pytest.mark.parametrize("boundary", ["after-audit", "after-redrive"])
@pytest.mark.parametrize("kind", ERRORS)
def test_redrive_hook_failing_before_the_commit(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException], boundary: str
) -> None:
    """Neither the audit row nor the state remains, and the hook's own error comes out."""
    put_dead(con)
    error = kind("told to")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        redrive(con, **GOOD, fault=failing_at(boundary, error))
    assert caught.value is error
    assert (job(con)["status"], audits(con)) == ("dead", [])
    assert redrive(con, **GOOD) is True


@pytest.mark.parametrize("kind", ERRORS)
def test_redrive_hook_failing_after_the_commit(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """Both the audit row and the state remain, and the hook's own error comes out."""
    put_dead(con)
    error = kind("told to")

    with pytest.raises(kind) as caught:
        redrive(con, **GOOD, fault=failing_at("after-commit", error))
    assert caught.value is error
    assert not con.in_transaction
    (released,), rows = committed(queue_path)
    assert (released["status"], len(rows)) == ("pending", 1)


def test_redrive_under_a_reader_is_rolled_back(con: sqlite3.Connection, queue_path: Path) -> None:
    """A COMMIT that fails because somebody reads leaves a dead job without an audit row."""
    put_dead(con)
    without_waiting(con)
    hook = Hook()

    with (
        reading(queue_path),
        unchanged(con, queue_path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        redrive(con, **GOOD, fault=hook)
    assert hook == ["after-audit", "after-redrive"]
    assert (job(con)["status"], audits(con)) == ("dead", [])


def test_redrive_under_a_writer_is_refused(con: sqlite3.Connection, queue_path: Path) -> None:
    """Whether a job is dead is decided under the write lock, never before it."""
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        redrive(con, **GOOD)
    assert not con.in_transaction


def test_redrive_refuses_a_callers_transaction(con: sqlite3.Connection) -> None:
    """A transaction of the caller's is neither committed nor rolled back."""
    con.execute("BEGIN")
    put_dead(con)

    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        redrive(con, **GOOD)
    assert con.in_transaction
    assert (job(con)["status"], audits(con)) == ("dead", [])
    con.execute("ROLLBACK")
    assert all_jobs(con) == []
