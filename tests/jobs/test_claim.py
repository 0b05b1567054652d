"""claim: the sweep, the choice, the lease, the hooks, and what is refused."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import Limits
from lease.jobs import _walk
from lease.worker import claim, enqueue, open_queue
from tests.support.queue import (
    BARE_SCHEMA,
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


@pytest.fixture(params=["opened", "bare"])
def con(request: pytest.FixtureRequest, queue_path: Path) -> Iterator[sqlite3.Connection]:
    """A queue from open_queue, and one of just the contract's tables; both are claimed alike."""
    if request.param == "opened":
        connection = open_queue(queue_path)
    else:
        connection = sqlite3.connect(queue_path, isolation_level=None)
        connection.executescript(BARE_SCHEMA)
    with closing(connection):
        yield connection


GOOD = {"owner": "worker-b", "now_ms": NOW, "lease_ms": 1000}


def unusable(limits: Limits) -> Cases:
    return table(
        owner=IDENTIFIERS,
        now_ms=instants(limits),
        lease_ms=integers(1, limits.max_lease_ms),
    )


@pytest.mark.parametrize(("face", "argument", "value"), for_each_face(unusable))
def test_claim_refuses(
    con: sqlite3.Connection, queue_path: Path, face: Face, argument: str, value: object
) -> None:
    """Input of another type or range is a ValueError before anything is swept or leased."""
    put_pending(con)
    put_pending(con, id="overdue", deadline=NOW)
    hook = Hook()

    with unchanged(con, queue_path), pytest.raises(ValueError, match=f"{argument} must be"):
        face.verbs.claim(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


@each_face
def test_claim_accepts_the_low_ends(con: sqlite3.Connection, face: Face) -> None:
    """Zero is an instant and a lease may last one millisecond."""
    put_pending(con, available_at=0)

    assert face.verbs.claim(con, "w", 0, 1)["lease_until"] == 1


@each_face
def test_claim_accepts_the_high_ends(con: sqlite3.Connection, face: Face) -> None:
    """The largest instant and lease belong to their ranges and stay within 10**15."""
    now_ms, lease_ms = face.limits.max_now_ms, face.limits.max_lease_ms
    put_pending(con, deadline=10**15)

    assert face.verbs.claim(con, "w", now_ms, lease_ms)["lease_until"] == now_ms + lease_ms


@pytest.mark.parametrize("owner", GOOD_IDENTIFIERS)
def test_claim_accepts_an_owner(con: sqlite3.Connection, owner: str) -> None:
    """1 to 64 ASCII letters, digits, underscores and hyphens name a worker."""
    put_pending(con)

    assert claim(con, owner, NOW)["owner"] == owner
    assert job(con)["owner"] == owner


def test_claim_of_a_pending_job(con: sqlite3.Connection) -> None:
    """The ticket has just its six keys, and the row says what the ticket says."""
    put_pending(con, attempts=1, token=6, reason="retry")

    ticket = claim(con, "worker-b", NOW, 2000)
    assert ticket == {
        "id": "job-1",
        "qty": 7,
        "owner": "worker-b",
        "token": 7,
        "attempt": 2,
        "lease_until": NOW + 2000,
    }
    assert type(ticket) is dict
    assert {key: type(value) for key, value in ticket.items()} == {
        "id": str,
        "qty": int,
        "owner": str,
        "token": int,
        "attempt": int,
        "lease_until": int,
    }
    assert job(con) == {
        "seq": 1,
        "id": "job-1",
        "qty": 7,
        "status": "leased",
        "attempts": 2,
        "max_attempts": 3,
        "token": 7,
        "available_at": NOW,
        "deadline": DEADLINE,
        "owner": "worker-b",
        "lease_until": NOW + 2000,
        "reason": None,
    }


def test_claim_takes_over_an_ended_lease(con: sqlite3.Connection) -> None:
    """A lease that nobody finished goes to the next worker under the next token."""
    before = put_leased(con, lease_until=NOW)

    assert claim(con, "worker-b", NOW, 2000) == {
        "id": "job-1",
        "qty": 7,
        "owner": "worker-b",
        "token": 5,
        "attempt": 2,
        "lease_until": NOW + 2000,
    }
    assert job(con) == before | {
        "owner": "worker-b",
        "token": 5,
        "attempts": 2,
        "lease_until": NOW + 2000,
    }


def test_claim_leases_for_a_second_unless_told(con: sqlite3.Connection) -> None:
    """The lease lasts 1000 ms by default."""
    put_pending(con)

    assert claim(con, "worker-b", NOW)["lease_until"] == NOW + 1000


@pytest.mark.parametrize(
    ("deadline", "lease_until"),
    [
        pytest.param(NOW + 1, NOW + 1, id="clipped-to-1-ms"),
        pytest.param(NOW + 999, NOW + 999, id="clipped"),
        pytest.param(NOW + 1000, NOW + 1000, id="equal"),
        pytest.param(NOW + 1001, NOW + 1000, id="not-clipped"),
    ],
)
def test_claim_never_leases_past_the_deadline(
    con: sqlite3.Connection, deadline: int, lease_until: int
) -> None:
    """A lease ends at the job's deadline if that comes first."""
    put_pending(con, deadline=deadline)

    assert claim(con, "worker-b", NOW, 1000)["lease_until"] == lease_until
    assert job(con)["lease_until"] == lease_until


UNCLAIMABLE = [
    pytest.param(put_pending, {"available_at": NOW + 1}, id="not-yet-available"),
    pytest.param(put_leased, {"lease_until": NOW + 1}, id="lease-runs"),
    pytest.param(
        put_leased, {"lease_until": NOW + 1, "deadline": NOW}, id="lease-runs-past-deadline"
    ),
    pytest.param(
        put_leased, {"lease_until": NOW + 1, "attempts": 3}, id="lease-runs-on-last-attempt"
    ),
    pytest.param(put_pending, {"status": "done"}, id="done"),
    pytest.param(put_pending, {"status": "done", "deadline": NOW}, id="done-past-deadline"),
    pytest.param(put_pending, {"status": "done", "attempts": 3}, id="done-on-last-attempt"),
    pytest.param(put_dead, {}, id="dead"),
    pytest.param(put_dead, {"reason": "permanent", "attempts": 1}, id="dead-permanent"),
    pytest.param(put_dead, {"deadline": DEADLINE, "attempts": 1}, id="dead-with-time-left"),
]


@pytest.mark.parametrize(("put", "columns"), UNCLAIMABLE)
def test_claim_leaves_alone(
    con: sqlite3.Connection, queue_path: Path, put: Any, columns: dict[str, Any]
) -> None:
    """Where nothing can be swept or leased, None is returned and no byte changes."""
    put(con, **columns)
    hook = Hook()

    with unchanged(con, queue_path):
        assert claim(con, "worker-b", NOW, 1000, hook) is None
    assert hook == []


def test_claim_of_an_empty_queue(con: sqlite3.Connection, queue_path: Path) -> None:
    """An empty queue gives None, calls no hook and changes no byte."""
    hook = Hook()

    with unchanged(con, queue_path):
        assert claim(con, "worker-b", NOW, 1000, hook) is None
    assert hook == []


CLAIMABLE = [
    pytest.param(put_pending, {"available_at": NOW}, id="available-now"),
    pytest.param(put_pending, {"available_at": NOW - 1}, id="available-before"),
    pytest.param(put_leased, {"lease_until": NOW}, id="lease-ends-now"),
    pytest.param(put_leased, {"lease_until": NOW - 1}, id="lease-ended-before"),
    pytest.param(put_pending, {"attempts": 2}, id="one-attempt-left"),
    pytest.param(put_leased, {"lease_until": NOW, "attempts": 2}, id="one-attempt-left-of-a-lease"),
    pytest.param(put_pending, {"deadline": NOW + 1}, id="deadline-next"),
    pytest.param(put_leased, {"lease_until": NOW, "deadline": NOW + 1}, id="lease-deadline-next"),
    # What a lease has as its availability, and a pending job as its lease, has no meaning.
    pytest.param(
        put_leased, {"lease_until": NOW, "available_at": NOW + 1}, id="lease-available-later"
    ),
    pytest.param(put_pending, {"lease_until": NOW + 1}, id="pending-with-a-lease-end"),
]


@pytest.mark.parametrize(("put", "columns"), CLAIMABLE)
def test_claim_takes(con: sqlite3.Connection, put: Any, columns: dict[str, Any]) -> None:
    """A job is claimable at the very instant it becomes available or its lease ends."""
    before = put(con, **columns)

    ticket = claim(con, "worker-b", NOW)
    assert (before["token"] + 1, before["attempts"] + 1) == (ticket["token"], ticket["attempt"])


SWEPT = [
    pytest.param(put_pending, {"deadline": NOW}, "deadline", id="pending-deadline-now"),
    pytest.param(put_pending, {"deadline": NOW - 1}, "deadline", id="pending-deadline-before"),
    pytest.param(put_pending, {"attempts": 3}, "exhausted", id="pending-all-attempts"),
    pytest.param(put_pending, {"attempts": 4}, "exhausted", id="pending-too-many-attempts"),
    pytest.param(
        put_pending,
        {"deadline": NOW + 1, "attempts": 3},
        "exhausted",
        id="pending-all-attempts-just-before-deadline",
    ),
    pytest.param(
        put_pending, {"deadline": NOW, "attempts": 3}, "deadline", id="pending-both-is-deadline"
    ),
    pytest.param(
        put_pending,
        {"deadline": NOW, "available_at": NOW + 1},
        "deadline",
        id="pending-deadline-before-available",
    ),
    pytest.param(
        put_pending,
        {"attempts": 3, "available_at": NOW + 1},
        "exhausted",
        id="pending-all-attempts-before-available",
    ),
    pytest.param(
        put_leased, {"lease_until": NOW, "deadline": NOW}, "deadline", id="lease-deadline-now"
    ),
    pytest.param(
        put_leased,
        {"lease_until": NOW - 2, "deadline": NOW - 1},
        "deadline",
        id="lease-deadline-before",
    ),
    pytest.param(
        put_leased, {"lease_until": NOW, "attempts": 3}, "exhausted", id="lease-all-attempts"
    ),
    pytest.param(
        put_leased,
        {"lease_until": NOW - 1, "attempts": 3},
        "exhausted",
        id="lease-ended-before-all-attempts",
    ),
    pytest.param(
        put_leased,
        {"lease_until": NOW, "deadline": NOW, "attempts": 3},
        "deadline",
        id="lease-both-is-deadline",
    ),
    pytest.param(
        put_leased,
        {"lease_until": NOW, "deadline": NOW, "available_at": NOW + 1},
        "deadline",
        id="lease-available-later",
    ),
]


@pytest.mark.parametrize(("put", "columns", "reason"), SWEPT)
def test_claim_sweeps(
    con: sqlite3.Connection, queue_path: Path, put: Any, columns: dict[str, Any], reason: str
) -> None:
    """Out of time or attempts is dead, committed, without a hook, though nothing was leased."""
    before = put(con, **columns)
    hook = Hook()

    assert claim(con, "worker-b", NOW, 1000, hook) is None
    assert hook == []
    assert not con.in_transaction
    swept = before | {"status": "dead", "reason": reason, "owner": None, "lease_until": None}
    assert committed(queue_path) == ([swept], [])


def test_claim_sweeps_every_job_and_leases_one(con: sqlite3.Connection) -> None:
    """All that has run out is buried, behind the leased job as well as before it."""
    put_pending(con, id="overdue-1", deadline=NOW)
    put_leased(con, id="used-up-1", attempts=3, lease_until=NOW)
    put_pending(con, id="first")
    put_pending(con, id="second")
    put_pending(con, id="overdue-2", deadline=NOW - 1)
    put_leased(con, id="used-up-2", attempts=3, lease_until=NOW)

    assert claim(con, "worker-b", NOW)["id"] == "first"
    assert [(row["id"], row["status"], row["reason"]) for row in all_jobs(con)] == [
        ("overdue-1", "dead", "deadline"),
        ("used-up-1", "dead", "exhausted"),
        ("first", "leased", None),
        ("second", "pending", None),
        ("overdue-2", "dead", "deadline"),
        ("used-up-2", "dead", "exhausted"),
    ]


def test_claim_writes_no_audit_row(con: sqlite3.Connection) -> None:
    """The quarantine is no redrive."""
    put_pending(con, deadline=NOW)
    claim(con, "worker-b", NOW)

    assert audits(con) == []


def test_claim_goes_by_seq(con: sqlite3.Connection) -> None:
    """The oldest claimable job comes first, whatever its id, state, availability or deadline."""
    put_pending(con, id="later", available_at=NOW + 1)
    put_leased(con, id="held")
    put_leased(con, id="z-lease-ended", lease_until=NOW)
    put_pending(con, id="a-long-available", available_at=0, deadline=NOW + 1)
    put_leased(con, id="b-lease-ended-before", lease_until=1)
    put_pending(con, id="c", available_at=NOW)

    claimed = [claim(con, "worker-b", NOW) for _ in range(5)]
    assert [ticket and ticket["id"] for ticket in claimed] == [
        "z-lease-ended",
        "a-long-available",
        "b-lease-ended-before",
        "c",
        None,
    ]


def test_claim_goes_by_seq_and_not_by_intake(con: sqlite3.Connection) -> None:
    """A row inserted later with a smaller seq comes first."""
    put_pending(con, id="nine", seq=9)
    put_pending(con, id="two", seq=2)
    put_leased(con, id="five", seq=5, lease_until=NOW)

    assert [claim(con, "w", NOW)["id"] for _ in range(3)] == ["two", "five", "nine"]


def test_claim_leases_one_job_at_a_time(con: sqlite3.Connection) -> None:
    """Only the returned job changes."""
    put_pending(con, id="first")
    others = [put_pending(con, id=name) for name in ("second", "third")]
    claim(con, "worker-b", NOW)

    assert others == all_jobs(con)[1:]


def test_claim_skips_what_waits(con: sqlite3.Connection) -> None:
    """A job that waits for its retry does not block the ones behind it."""
    enqueue(con, {"id": "waits", "qty": 1}, NOW + 1, 1000)
    enqueue(con, {"id": "ready", "qty": 1}, NOW, 1000)

    assert claim(con, "worker-b", NOW)["id"] == "ready"


def test_claim_counts_attempts_up_to_the_budget(con: sqlite3.Connection) -> None:
    """Each claim uses one attempt and one token; the one after the last buries the job."""
    enqueue(con, {"id": "job-1", "qty": 7}, 0, 60_000, 2)

    first = claim(con, "worker-a", 0, 10)
    second = claim(con, "worker-b", 10, 10)
    assert [(each["attempt"], each["token"]) for each in (first, second)] == [(1, 1), (2, 2)]
    assert claim(con, "worker-c", 19, 10) is None
    assert job(con)["status"] == "leased"
    assert claim(con, "worker-c", 20, 10) is None
    assert job(con)["status"] == "dead"
    assert job(con)["reason"] == "exhausted"


def test_claim_gives_one_job_to_one_worker(con: sqlite3.Connection) -> None:
    """While a lease runs, the job is nobody else's, not even under the same name."""
    put_pending(con)

    assert claim(con, "worker-a", NOW) is not None
    assert claim(con, "worker-a", NOW) is None
    assert claim(con, "worker-b", NOW + 999) is None
    assert claim(con, "worker-b", NOW + 1000)["token"] == 2


def test_claim_ticket_is_the_callers(con: sqlite3.Connection) -> None:
    """What the caller does to a ticket changes no job and no other ticket."""
    put_pending(con, id="a")
    put_pending(con, id="b")
    first = claim(con, "worker-b", NOW)
    first.clear()

    assert claim(con, "worker-b", NOW)["id"] == "b"
    assert job(con, "a")["owner"] == "worker-b"


def test_claim_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """The first hook sees a change that others do not; the second is after everybody's view."""
    pending = put_pending(con)
    put_pending(con, id="overdue", deadline=NOW)
    seen = []

    def hook(boundary: str) -> None:
        other, _ = committed(queue_path)
        seen.append((boundary, con.in_transaction, job(con)["status"], other[0]["status"]))
        if boundary == "after-claim":
            assert pending == other[0]
            assert other[1]["status"] == "pending"

    claim(con, "worker-b", NOW, 1000, hook)
    assert seen == [
        ("after-claim", True, "leased", "pending"),
        ("after-commit", False, "leased", "leased"),
    ]


def test_claim_hook_holds_the_write_lock(con: sqlite3.Connection, queue_path: Path) -> None:
    """Nobody writes between the choice and the commit; after it anybody may."""
    put_pending(con)

    def hook(boundary: str) -> None:
        if boundary == "after-claim":
            with pytest.raises(sqlite3.OperationalError, match="locked"), writing(queue_path):
                pass
        else:
            with writing(queue_path):
                pass

    claim(con, "worker-b", NOW, 1000, hook)
    assert job(con)["status"] == "leased"


def test_claim_calls_a_hook_that_is_false(con: sqlite3.Connection) -> None:
    """Only None means no hook; a callable that is false by its length is one."""
    put_pending(con)
    hook = Hook()
    assert not hook
    claim(con, "worker-b", NOW, 1000, hook)

    assert hook == ["after-claim", "after-commit"]


@pytest.mark.parametrize("kind", ERRORS)
def test_claim_hook_failing_before_the_commit(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """The sweep and the lease are undone and the hook's own error comes out."""
    put_pending(con, id="overdue", deadline=NOW)
    put_pending(con)
    error = kind("told to")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        claim(con, "worker-b", NOW, 1000, failing_at("after-claim", error))
    assert caught.value is error
    assert claim(con, "worker-b", NOW)["token"] == 1


@pytest.mark.parametrize("kind", ERRORS)
def test_claim_hook_failing_after_the_commit(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """The lease stays, nothing is open, and the hook's own error comes out."""
    put_pending(con, id="overdue", deadline=NOW)
    put_pending(con)
    error = kind("told to")

    with pytest.raises(kind) as caught:
        claim(con, "worker-b", NOW, 1000, failing_at("after-commit", error))
    assert caught.value is error
    assert not con.in_transaction
    jobs, _ = committed(queue_path)
    assert [row["status"] for row in jobs] == ["dead", "leased"]


@pytest.mark.parametrize(
    "columns", [pytest.param({}, id="lease"), pytest.param({"deadline": NOW}, id="sweep-alone")]
)
def test_claim_under_a_reader_is_rolled_back(
    con: sqlite3.Connection, queue_path: Path, columns: dict[str, Any]
) -> None:
    """A COMMIT that fails because somebody reads undoes the lease and the sweep."""
    put_pending(con, **columns)
    without_waiting(con)
    hook = Hook()

    with (
        reading(queue_path),
        unchanged(con, queue_path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        claim(con, "worker-b", NOW, 1000, hook)
    assert "after-commit" not in hook
    assert job(con)["status"] == "pending"
    claim(con, "worker-b", NOW)
    assert job(con)["status"] != "pending"


def test_claim_under_a_writer_is_refused(con: sqlite3.Connection, queue_path: Path) -> None:
    """Without the write lock there is no claim, and nothing is left open."""
    put_pending(con)
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        claim(con, "worker-b", NOW)
    assert not con.in_transaction
    assert claim(con, "worker-b", NOW) is not None


def test_claim_of_an_empty_queue_takes_the_write_lock(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Whether anything is claimable is decided under the lock, never before it."""
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        claim(con, "worker-b", NOW)


def test_claim_refuses_a_callers_transaction(con: sqlite3.Connection) -> None:
    """A transaction of the caller's is neither committed nor rolled back."""
    con.execute("BEGIN")
    put_pending(con)

    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        claim(con, "worker-b", NOW)
    assert con.in_transaction
    assert job(con)["status"] == "pending"
    con.execute("ROLLBACK")
    assert all_jobs(con) == []


def test_claim_does_not_take_a_failing_disk_for_a_bare_file(
    con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a missing tree makes a claim read the whole file; any other error comes out."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR

    class Failing:
        def one(self, _con: sqlite3.Connection, **_parameters: object) -> None:
            raise error

    monkeypatch.setattr(_walk, "CLAIM_LOOK", Failing())

    with pytest.raises(sqlite3.OperationalError) as caught:
        claim(con, "w", 0)

    assert caught.value is error
    assert not con.in_transaction
