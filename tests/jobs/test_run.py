"""run_once and run_file: the order of events, every outcome, every error, every path."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import BadAck, Conflict, Limits, Permanent, Retryable, UnusableFile, jobs
from lease.worker import claim, enqueue, finish, open_queue, run_file, run_once
from tests.support.queue import (
    BARE_SCHEMA,
    DEADLINE,
    ERRORS,
    NOW,
    Face,
    all_jobs,
    committed,
    content,
    descriptors,
    each_face,
    is_closed,
    job,
    opened,
    put_leased,
    put_pending,
    reading,
    unchanged,
    without_waiting,
    writing,
)
from tests.support.refused import (
    FRACTIONS,
    IDENTIFIERS,
    BadRepr,
    Cases,
    Int,
    for_each_face,
    instants,
    integers,
    table,
)

LATER = NOW + 100


class Clock:
    """A clock that gives the readings it was told, and no more; an error is raised."""

    def __init__(self, *readings: Any) -> None:
        self.readings = list(readings)

    def __call__(self) -> Any:
        reading = self.readings.pop(0)
        if isinstance(reading, BaseException):
            raise reading
        return reading


class Sender:
    """A sender that answers as it was told, and keeps what it was asked to send."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.sent: list[Any] = []

    def __call__(self, event: Any) -> Any:
        self.sent.append(event)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def accept(event: object) -> bool:
    return True


def unusable(limits: Limits) -> Cases:
    return table(owner=IDENTIFIERS, jitter=FRACTIONS, lease_ms=integers(1, limits.max_lease_ms))


@pytest.mark.parametrize(("face", "argument", "value"), for_each_face(unusable))
def test_run_once_refuses(
    con: sqlite3.Connection, queue_path: Path, face: Face, argument: str, value: object
) -> None:
    """Input of another type or range is a ValueError before anything is claimed or sent."""
    put_pending(con)
    send = Sender()
    good = {"owner": "worker-b", "clock": Clock(NOW), "send": send, "jitter": 1, "lease_ms": 1000}

    with unchanged(con, queue_path), pytest.raises(ValueError, match=f"{argument} must be"):
        face.verbs.run_once(con, **(good | {argument: value}))
    assert send.sent == []


@pytest.mark.parametrize(
    ("argument", "value"),
    table(base_ms=integers(1, 86_400_000), cap_ms=integers(100, 86_400_000)),
)
def test_run_once_refuses_a_backoff(
    con: sqlite3.Connection, queue_path: Path, argument: str, value: object
) -> None:
    """An unusable backoff is refused before the claim, and not after the send that needs it."""
    put_pending(con)
    clock = Clock(NOW)

    with unchanged(con, queue_path), pytest.raises(ValueError, match=f"{argument} must be"):
        jobs.run_once(con, "worker-b", clock, Sender(), 1, **{argument: value})
    assert clock.readings == [NOW]


@pytest.mark.parametrize("jitter", FRACTIONS)
def test_run_once_checks_the_jitter_before_the_clock(
    con: sqlite3.Connection, jitter: object
) -> None:
    """An unusable jitter is refused before even the clock is read."""
    clock = Clock(NOW)

    with pytest.raises(ValueError, match="jitter"):
        run_once(con, "not an identifier", clock, Sender(), jitter)
    assert clock.readings == [NOW]


@pytest.mark.parametrize(("face", "reading"), for_each_face(instants))
def test_run_once_refuses_a_first_reading(
    con: sqlite3.Connection, queue_path: Path, face: Face, reading: object
) -> None:
    """A first reading that is no instant is a ValueError; nothing is claimed or sent."""
    put_pending(con)
    send = Sender()

    with unchanged(con, queue_path), pytest.raises(ValueError, match="must be"):
        face.verbs.run_once(con, "worker-b", Clock(reading), send, 1)
    assert send.sent == []


@each_face
def test_run_once_accepts_the_low_ends(con: sqlite3.Connection, face: Face) -> None:
    """Zero is a reading of the clock; a lease may last one millisecond."""
    put_pending(con, available_at=0)

    assert face.verbs.run_once(con, "w", Clock(0, 0), accept, 0, 1)["status"] == "done"


@each_face
def test_run_once_accepts_the_high_ends(con: sqlite3.Connection, face: Face) -> None:
    """The largest instant, lease and attempt are in range, also where a retry waits."""
    now_ms, _ttl, lease_ms, _delay, attempts = face.limits
    put_pending(con, deadline=10**15, attempts=attempts - 1, max_attempts=attempts + 1)
    until = []

    def send(event: object) -> None:
        until.append(job(con)["lease_until"])
        raise Retryable

    assert face.verbs.run_once(con, "w", Clock(now_ms, now_ms), send, 1, lease_ms)["status"] == (
        "pending"
    )
    assert until == [now_ms + lease_ms]
    assert job(con)["available_at"] == now_ms + 1000


def test_run_once_with_nothing_to_do(con: sqlite3.Connection, queue_path: Path) -> None:
    """Without a claimable job it is None: nothing sent, the clock read once, no byte changed."""
    put_leased(con)
    clock, send = Clock(NOW, LATER), Sender()

    with unchanged(con, queue_path):
        assert run_once(con, "worker-b", clock, send, 1) is None
    assert send.sent == []
    assert clock.readings == [LATER]


def test_run_once_sweeps_without_sending(con: sqlite3.Connection, queue_path: Path) -> None:
    """The quarantine of its claim is committed even where nothing is left to send."""
    put_pending(con, deadline=NOW)
    send = Sender()

    assert run_once(con, "worker-b", Clock(NOW), send, 1) is None
    assert send.sent == []
    assert committed(queue_path)[0][0]["reason"] == "deadline"


def test_run_once_of_an_accepted_job(con: sqlite3.Connection, queue_path: Path) -> None:
    """Exactly True makes the job done; the result has just id, token and status."""
    before = put_pending(con, token=4)
    clock, send = Clock(NOW, LATER), Sender()

    settled = run_once(con, "worker-b", clock, send, 1)
    assert settled == {"id": "job-1", "token": 5, "status": "done"}
    assert type(settled) is dict
    assert clock.readings == []
    assert send.sent == [{"id": "job-1", "qty": 7}]
    assert type(send.sent[0]) is dict
    assert not con.in_transaction
    done = before | {"status": "done", "attempts": 1, "token": 5, "available_at": LATER}
    assert committed(queue_path) == ([done], [])


def test_run_once_leases_for_a_second_unless_told(con: sqlite3.Connection) -> None:
    """The lease lasts 1000 ms by default, from the first reading of the clock."""
    put_pending(con)
    send = Sender(answer=None)

    with pytest.raises(BadAck):
        run_once(con, "worker-b", Clock(NOW), send, 1)
    assert job(con)["lease_until"] == NOW + 1000


def test_run_once_reads_claims_sends_reads_and_settles(con: sqlite3.Connection) -> None:
    """The order is: clock, claim, send, clock, finish."""
    put_pending(con)
    events = []

    def clock() -> int:
        events.append(("clock", job(con)["status"]))
        return NOW

    def send(event: object) -> bool:
        events.append(("send", job(con)["status"]))
        return True

    run_once(con, "worker-b", clock, send, 1)
    assert events == [("clock", "pending"), ("send", "leased"), ("clock", "leased")]
    assert job(con)["status"] == "done"


def test_run_once_sends_outside_any_transaction(con: sqlite3.Connection, queue_path: Path) -> None:
    """While it sends, and while it reads the clock, anybody may write."""
    put_pending(con)
    calls = []

    def free() -> None:
        assert not con.in_transaction
        with writing(queue_path) as other:
            put_pending(other, id=f"job-{len(calls) + 2}")
            other.execute("COMMIT")
        calls.append(committed(queue_path)[0][0]["status"])

    def clock() -> int:
        free()
        return NOW

    def send(event: object) -> bool:
        free()
        return True

    assert run_once(con, "worker-b", clock, send, 1)["status"] == "done"
    assert calls == ["pending", "leased", "leased"]


def test_run_once_keeps_its_ticket_from_the_sender(con: sqlite3.Connection) -> None:
    """What the sender does to its dict changes neither the job nor the result."""
    put_pending(con)

    def send(event: dict[str, Any]) -> bool:
        event["id"] = "job-2"
        event["qty"] = 8
        event["token"] = 99
        return True

    assert run_once(con, "worker-b", Clock(NOW, LATER), send, 1) == {
        "id": "job-1",
        "token": 1,
        "status": "done",
    }
    assert (job(con)["qty"], job(con)["token"]) == (7, 1)


def test_run_once_gives_each_send_its_own_dict(con: sqlite3.Connection) -> None:
    """A sender that keeps or empties its dict does not meet it again."""
    put_pending(con, max_attempts=9)
    sent = []

    def send(event: dict[str, Any]) -> bool:
        sent.append((id(event), dict(event)))
        kept.append(event)
        event.clear()
        raise Retryable

    kept: list[Any] = []
    run_once(con, "worker-b", Clock(NOW, NOW), send, 0)
    run_once(con, "worker-b", Clock(NOW, NOW), send, 0)
    assert [event for _, event in sent] == [{"id": "job-1", "qty": 7}] * 2
    assert sent[0][0] != sent[1][0]


def test_run_once_is_not_confused_by_work_done_during_the_send(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Intake, claims and finishes over another connection leave this send's ticket its own."""
    put_pending(con, id="mine")

    def send(event: object) -> bool:
        with closing(open_queue(queue_path)) as other:
            enqueue(other, {"id": "theirs", "qty": 1}, NOW, 1000)
            ticket = claim(other, "worker-b", NOW)
            assert ticket["id"] == "theirs"
            assert finish(other, ticket, "permanent", NOW) == "dead"
            enqueue(other, {"id": "next", "qty": 2}, NOW, 1000)
        return True

    settled = run_once(con, "worker-b", Clock(NOW, LATER), send, 1)
    assert settled == {"id": "mine", "token": 1, "status": "done"}
    assert [row["status"] for row in all_jobs(con)] == ["done", "dead", "pending"]


class RetryLater(Retryable):
    """A sender's own kind of Retryable."""


class Never(Permanent):
    """A sender's own kind of Permanent."""


RETRYABLE = [pytest.param(kind, id=kind.__name__) for kind in (Retryable, RetryLater)]
PERMANENT = [pytest.param(kind, id=kind.__name__) for kind in (Permanent, Never)]


@pytest.mark.parametrize("kind", PERMANENT)
def test_run_once_of_a_permanent_failure(con: sqlite3.Connection, kind: type[Permanent]) -> None:
    """Permanent, of any kind, quarantines the job."""
    before = put_pending(con)
    clock = Clock(NOW, LATER)

    assert run_once(con, "worker-b", clock, Sender(kind("no")), 1) == {
        "id": "job-1",
        "token": 1,
        "status": "dead",
    }
    assert clock.readings == []
    assert job(con) == before | {
        "status": "dead",
        "reason": "permanent",
        "attempts": 1,
        "token": 1,
        "available_at": LATER,
    }


@pytest.mark.parametrize("kind", RETRYABLE)
def test_run_once_of_a_retryable_failure(con: sqlite3.Connection, kind: type[Retryable]) -> None:
    """Retryable, of any kind, postpones the job, counted from the second reading."""
    before = put_pending(con)
    clock = Clock(NOW, LATER)

    assert run_once(con, "worker-b", clock, Sender(kind("later")), 1) == {
        "id": "job-1",
        "token": 1,
        "status": "pending",
    }
    assert clock.readings == []
    assert job(con) == before | {
        "status": "pending",
        "reason": "retry",
        "attempts": 1,
        "token": 1,
        "available_at": LATER + 100,
    }


@pytest.mark.parametrize(
    ("attempt", "jitter", "delay"),
    [
        (1, 1, 100),
        (2, 1, 200),
        (3, 1.0, 400),
        (4, 1, 800),
        (5, 1, 1000),
        (16, 1, 1000),
        (1, 0, 0),
        (1, 0.5, 50),
        (2, 0.999, 199),
        (16, 0.25, 250),
    ],
)
def test_run_once_backs_off(
    con: sqlite3.Connection, attempt: int, jitter: float, delay: int
) -> None:
    """A retry waits for its attempt's share of 100 ms doubled up to 1000 ms."""
    put_pending(con, attempts=attempt - 1, max_attempts=17)
    run_once(con, "worker-b", Clock(NOW, LATER), Sender(Retryable()), jitter)

    assert job(con)["available_at"] == LATER + delay


@pytest.mark.parametrize(("attempts", "delay"), [(0, 1500), (1, 3000), (2, 3500)])
def test_run_once_takes_another_backoff(con: sqlite3.Connection, attempts: int, delay: int) -> None:
    """The general verb's base and cap are the caller's."""
    put_pending(con, attempts=attempts)
    send = Sender(Retryable())
    put_pending(con, id="spare")
    con.execute("UPDATE jobs SET max_attempts = 16")
    jobs.run_once(con, "w", Clock(NOW, LATER), send, 1, base_ms=1500, cap_ms=3500)

    assert job(con)["available_at"] == LATER + delay


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        pytest.param({"attempts": 2}, "exhausted", id="last-attempt"),
        pytest.param({"deadline": LATER + 100}, "deadline", id="no-time-left"),
        pytest.param({"attempts": 2, "deadline": LATER + 100}, "exhausted", id="both"),
    ],
)
def test_run_once_of_a_retry_that_cannot_be(
    con: sqlite3.Connection, columns: dict[str, Any], reason: str
) -> None:
    """A retryable failure without attempts or time for another try is dead."""
    put_pending(con, **columns)

    settled = run_once(con, "worker-b", Clock(NOW, LATER), Sender(Retryable()), 1)
    assert settled["status"] == "dead"
    assert job(con)["reason"] == reason


class Truthy:
    """What comparing arrays gives: equal to True, true, and not True."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True


class Undecided:
    """What comparing longer arrays gives: neither true nor false."""

    def __bool__(self) -> bool:
        raise TypeError("ambiguous")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="none"),
        pytest.param(False, id="false"),
        pytest.param(1, id="1"),
        pytest.param(1.0, id="1.0"),
        pytest.param(Int(1), id="int-subclass"),
        pytest.param("true", id="str"),
        pytest.param("ok", id="outcome"),
        pytest.param(b"\x01", id="bytes"),
        pytest.param([True], id="list"),
        pytest.param({"accepted": True}, id="dict"),
        pytest.param(Truthy(), id="truthy"),
        pytest.param(Undecided(), id="undecided"),
        pytest.param(BadRepr(), id="bad-repr"),
        pytest.param(Retryable, id="error-class"),
    ],
)
def test_run_once_of_a_bad_answer(con: sqlite3.Connection, answer: object) -> None:
    """Anything but True is a BadAck: the lease stays and the clock is not read again."""
    before = put_pending(con)
    clock = Clock(NOW, LATER)

    with pytest.raises(BadAck, match="not True"):
        run_once(con, "worker-b", clock, Sender(answer), 1, 2000)
    assert clock.readings == [LATER]
    assert not con.in_transaction
    assert job(con) == leased(before)


def leased(before: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a pending job after worker-b has claimed it at NOW for 2 s."""
    return before | {
        "status": "leased",
        "attempts": before["attempts"] + 1,
        "token": before["token"] + 1,
        "owner": "worker-b",
        "lease_until": NOW + 2000,
    }


@pytest.mark.parametrize(
    "kind", [*ERRORS, *(pytest.param(kind, id=kind.__name__) for kind in (BadAck, Conflict))]
)
def test_run_once_of_an_unknown_error(con: sqlite3.Connection, kind: type[BaseException]) -> None:
    """Any other error comes out as it is: the lease stays and the clock is not read again."""
    before = put_pending(con)
    error = kind("told to")
    clock, send = Clock(NOW, LATER), Sender(error)

    with pytest.raises(kind) as caught:
        run_once(con, "worker-b", clock, send, 1, 2000)
    assert caught.value is error
    assert clock.readings == [LATER]
    assert len(send.sent) == 1
    assert not con.in_transaction
    assert job(con) == leased(before)


OUTCOMES = [
    pytest.param(True, id="ok"),
    pytest.param(Retryable(), id="retry"),
    pytest.param(Permanent(), id="permanent"),
]


@pytest.mark.parametrize("answer", OUTCOMES)
@pytest.mark.parametrize(
    ("face", "reading"),
    for_each_face(lambda limits: [*instants(limits), pytest.param(NOW - 1, id="backwards")]),
)
def test_run_once_refuses_a_second_reading(
    con: sqlite3.Connection, face: Face, reading: object, answer: object
) -> None:
    """A second reading that is no instant or went backwards is a ValueError; the lease stays."""
    before = put_pending(con)

    with pytest.raises(ValueError, match=r"clock\(\)"):
        face.verbs.run_once(con, "worker-b", Clock(NOW, reading), Sender(answer), 1, 2000)
    assert not con.in_transaction
    assert job(con) == leased(before)


def test_run_once_accepts_a_clock_that_stood_still(con: sqlite3.Connection) -> None:
    """Two equal readings are in order."""
    put_pending(con)

    assert run_once(con, "worker-b", Clock(NOW, NOW), accept, 1)["status"] == "done"


@pytest.mark.parametrize("kind", ERRORS)
def test_run_once_of_a_clock_failing_first(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """What the first reading raises comes out as it is; nothing is claimed or sent."""
    put_pending(con)
    error, send = kind("told to"), Sender()

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        run_once(con, "worker-b", Clock(error), send, 1)
    assert caught.value is error
    assert send.sent == []


@pytest.mark.parametrize("kind", ERRORS)
def test_run_once_of_a_clock_failing_second(
    con: sqlite3.Connection, kind: type[BaseException]
) -> None:
    """What the second reading raises comes out as it is; the lease stays."""
    before, error = put_pending(con), kind("told to")

    with pytest.raises(kind) as caught:
        run_once(con, "worker-b", Clock(NOW, error), accept, 1, 2000)
    assert caught.value is error
    assert not con.in_transaction
    assert job(con) == leased(before)


def test_run_once_does_not_take_a_clocks_error_for_the_senders(con: sqlite3.Connection) -> None:
    """A clock that raises Retryable postpones nothing: only the sender classifies."""
    before = put_pending(con)

    with pytest.raises(Retryable):
        run_once(con, "worker-b", Clock(NOW, Retryable()), accept, 1, 2000)
    assert job(con) == leased(before)


@pytest.mark.parametrize("answer", OUTCOMES)
@pytest.mark.parametrize(
    ("second_ms", "stale"),
    [
        pytest.param(NOW + 1999, False, id="just-in-time"),
        pytest.param(NOW + 2000, True, id="lease-ends-now"),
        pytest.param(NOW + 2001, True, id="lease-ended-before"),
    ],
)
def test_run_once_of_a_late_answer(
    con: sqlite3.Connection, second_ms: int, stale: bool, answer: object
) -> None:
    """An answer at or after the lease's end is stale and leaves the row as it is."""
    before = put_pending(con)

    settled = run_once(con, "worker-b", Clock(NOW, second_ms), Sender(answer), 1, 2000)
    assert ("id", "job-1") in settled.items()
    assert settled["token"] == 1
    assert (settled["status"] == "stale") is stale
    assert (job(con) == leased(before)) is stale


def test_run_once_of_an_answer_after_the_deadline(con: sqlite3.Connection) -> None:
    """The deadline clips the lease, and an answer at the deadline is stale."""
    put_pending(con, deadline=NOW + 500)

    settled = run_once(con, "worker-b", Clock(NOW, NOW + 500), accept, 1, 2000)
    assert settled == {"id": "job-1", "token": 1, "status": "stale"}
    assert job(con)["status"] == "leased"


def test_run_once_overtaken_during_the_send(con: sqlite3.Connection, queue_path: Path) -> None:
    """A newer claim keeps its lease, its owner and its token from the slow sender."""
    put_pending(con)

    def send(event: object) -> bool:
        with closing(open_queue(queue_path)) as other:
            claim(other, "worker-b", NOW + 1000, 30_000)
        return True

    settled = run_once(con, "worker-b", Clock(NOW, NOW + 1000), send, 1)
    assert settled == {"id": "job-1", "token": 1, "status": "stale"}
    row = job(con)
    assert (row["status"], row["token"], row["lease_until"]) == ("leased", 2, NOW + 31_000)


def test_run_once_is_done_with_one_job(con: sqlite3.Connection) -> None:
    """One call sends one job; the next call sends the next."""
    put_pending(con, id="a")
    put_pending(con, id="b")
    send = Sender()

    assert run_once(con, "w", Clock(NOW, NOW), send, 1)["id"] == "a"
    assert run_once(con, "w", Clock(NOW, NOW), send, 1)["id"] == "b"
    assert run_once(con, "w", Clock(NOW, NOW), send, 1) is None
    assert [event["id"] for event in send.sent] == ["a", "b"]


def test_run_once_with_a_callers_transaction(con: sqlite3.Connection) -> None:
    """A transaction of the caller's is left alone, and nothing is sent."""
    con.execute("BEGIN")
    put_pending(con)
    send = Sender()

    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        run_once(con, "w", Clock(NOW), send, 1)
    assert con.in_transaction
    assert send.sent == []
    con.execute("ROLLBACK")


def test_run_once_whose_finish_is_locked_out(con: sqlite3.Connection, queue_path: Path) -> None:
    """Where the result cannot be recorded the error comes out and the lease stays."""
    before = put_pending(con)
    without_waiting(con)
    readers = []

    def send(event: object) -> bool:
        readers.append(reading(queue_path))
        readers[0].__enter__()
        return True

    try:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            run_once(con, "worker-b", Clock(NOW, LATER), send, 1, 2000)
    finally:
        readers[0].__exit__(None, None, None)
    assert not con.in_transaction
    assert job(con) == leased(before)


@pytest.fixture
def queue(queue_path: Path) -> Path:
    """A queue file with one job in it, and nobody who has it open."""
    with closing(open_queue(queue_path)) as con:
        put_pending(con)
    return queue_path


def test_run_file_of_a_job(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns what run_once returns, and closes its connection."""
    made = opened(monkeypatch)

    assert run_file(queue, "worker-b", Clock(NOW, LATER), accept, 1) == {
        "id": "job-1",
        "token": 1,
        "status": "done",
    }
    assert [is_closed(con) for con in made] == [True]
    assert descriptors(queue.parent) == []
    assert committed(queue)[0][0]["available_at"] == LATER


def test_run_file_with_nothing_to_do(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a claimable job it is None; the file stays as it is and is closed."""
    made, before = opened(monkeypatch), content(queue)

    assert run_file(queue, "worker-b", Clock(NOW - 1), accept, 1) is None
    assert [is_closed(con) for con in made] == [True]
    assert before == content(queue)


def test_run_file_leases_for_a_second_unless_told(queue: Path) -> None:
    """The lease lasts 1000 ms by default, and as long as told otherwise."""
    with pytest.raises(BadAck):
        run_file(queue, "worker-b", Clock(NOW), Sender(None), 1)
    with pytest.raises(BadAck):
        run_file(queue, "worker-b", Clock(NOW + 1000), Sender(None), 1, 5000)

    assert committed(queue)[0][0]["lease_until"] == NOW + 6000


def test_run_file_holds_one_connection_while_it_sends(queue: Path) -> None:
    """The send happens with the queue open and unlocked."""

    def send(event: object) -> bool:
        assert descriptors(queue.parent) == [str(queue)]
        with writing(queue):
            return True

    assert run_file(queue, "worker-b", Clock(NOW, LATER), send, 1)["status"] == "done"


@pytest.mark.parametrize("kind", ERRORS)
def test_run_file_closes_after_a_senders_error(
    queue: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Whatever the sender raises comes out as it is, with the connection closed."""
    made, error = opened(monkeypatch), kind("told to")

    with pytest.raises(kind) as caught:
        run_file(queue, "worker-b", Clock(NOW), Sender(error), 1)
    assert caught.value is error
    assert [is_closed(con) for con in made] == [True]
    assert committed(queue)[0][0]["status"] == "leased"


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        pytest.param({"jitter": 2}, ValueError, id="jitter"),
        pytest.param({"owner": ""}, ValueError, id="owner"),
        pytest.param({"lease_ms": 0}, ValueError, id="lease"),
        pytest.param({"clock": Clock(-1)}, ValueError, id="first-reading"),
        pytest.param({"clock": Clock(NOW, NOW - 1)}, ValueError, id="second-reading"),
        pytest.param({"clock": Clock(KeyboardInterrupt())}, KeyboardInterrupt, id="clock"),
        pytest.param({"send": Sender(1)}, BadAck, id="bad-answer"),
    ],
)
def test_run_file_closes_after_a_refusal(
    queue: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, Any],
    kind: type[BaseException],
) -> None:
    """Whatever is refused, the connection is closed."""
    made = opened(monkeypatch)
    good = {"owner": "worker-b", "clock": Clock(NOW, LATER), "send": accept, "jitter": 1}

    with pytest.raises(kind):
        run_file(queue, **(good | changed))
    assert [is_closed(con) for con in made] == [True]
    assert descriptors(queue.parent) == []


def a_text(path: Path) -> None:
    path.write_text("this is no database, however long a text it is made to be" * 20)


def a_strangers(path: Path) -> None:
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE jobs (name TEXT)")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(a_text, sqlite3.DatabaseError, id="no-database"),
        pytest.param(a_strangers, UnusableFile, id="strangers-tables"),
    ],
)
def test_run_file_closes_a_file_it_cannot_use(
    queue_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    kind: type[Exception],
) -> None:
    """A file that is no queue is refused, unread by the clock, unchanged and closed."""
    make(queue_path)
    made, before, clock = opened(monkeypatch), content(queue_path), Clock(NOW)

    with pytest.raises(kind):
        run_file(queue_path, "worker-b", clock, accept, 1)
    assert [is_closed(con) for con in made] == [True]
    assert clock.readings == [NOW]
    assert before == content(queue_path)


def test_run_file_of_a_bare_queue(queue_path: Path) -> None:
    """A queue made by hand is an existing queue."""
    with closing(sqlite3.connect(queue_path)) as con:
        con.executescript(BARE_SCHEMA)
        put_pending(con)
        con.commit()

    assert run_file(queue_path, "w", Clock(NOW, LATER), accept, 1)["status"] == "done"


MISSING = [
    pytest.param(lambda path: None, id="missing"),
    pytest.param(lambda path: path.mkdir(), id="folder"),
    pytest.param(os.mkfifo, id="fifo"),
    pytest.param(lambda path: path.symlink_to(path.parent / "nowhere"), id="dangling-symlink"),
    pytest.param(lambda path: path.symlink_to(path), id="symlink-loop"),
    pytest.param(lambda path: path.symlink_to(path.parent), id="symlink-to-folder"),
]


@pytest.mark.parametrize("make", MISSING)
@each_face
def test_run_file_without_an_ordinary_file(
    queue_path: Path, face: Face, make: Callable[[Path], object]
) -> None:
    """Where no ordinary file is, nothing is made, claimed or sent."""
    make(queue_path)
    before = sorted(os.listdir(queue_path.parent))
    clock, send = Clock(NOW), Sender()

    with pytest.raises(FileNotFoundError, match=r"queue\.db"):
        face.verbs.run_file(queue_path, "worker-b", clock, send, 1)
    assert before == sorted(os.listdir(queue_path.parent))
    assert clock.readings == [NOW]
    assert send.sent == []


@pytest.mark.parametrize(
    "path",
    ["", ":memory:", "file::memory:", "file:q?mode=memory", "no/q.db", "q\x00.db", b"", b"q"],
)
def test_run_file_without_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | bytes
) -> None:
    """No name has a meaning that makes a queue out of nothing."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(FileNotFoundError):
        run_file(path, "worker-b", Clock(NOW), Sender(), 1)
    assert os.listdir(tmp_path) == []


NAMES = [
    "a?b.db",
    "q.db?mode=memory",
    "a#b.db",
    "a%41b.db",
    "100%.db",
    "a b.db",
    "a'b\"c.db",
    "a\nb.db",
    "file:q.db",
    "file::memory:",
    ":memory:x",
    "-",
    "\u00fc\U0001f4ec.db",
    os.fsdecode(b"\xff\xfe.db"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [str, os.fsencode, Path])
def test_run_file_takes_a_path_to_the_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shape: Callable[[str], Any]
) -> None:
    """No character of a relative or absolute path means anything, as str, bytes or PathLike."""
    monkeypatch.chdir(tmp_path)
    with closing(open_queue(shape(name))) as con:
        put_pending(con)
    assert os.listdir(tmp_path) == [name]

    absolute = shape(os.path.join(tmp_path, name))
    assert run_file(absolute, "w", Clock(NOW, NOW), Sender(Retryable()), 0)["status"] == "pending"
    assert run_file(shape(name), "w", Clock(NOW, NOW), accept, 0)["status"] == "done"
    assert os.listdir(tmp_path) == [name]


def test_run_file_follows_links(tmp_path: Path, queue: Path) -> None:
    """A link to a queue is that queue, also where `..` follows a linked folder."""
    (tmp_path / "here").mkdir()
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "here" / "folder").symlink_to(tmp_path / "far" / "away")
    (tmp_path / "far" / "link.db").symlink_to(queue)

    settled = run_file(f"{tmp_path}/here/folder/../link.db", "w", Clock(NOW, LATER), accept, 1)
    assert settled["status"] == "done"
    assert not (tmp_path / "here" / "link.db").exists()


def test_run_file_recovers_what_another_run_left(queue: Path) -> None:
    """A worker that fails after its send is followed by one that sends the job again."""
    first, second = Sender(RuntimeError("lost the answer")), Sender()

    with pytest.raises(RuntimeError):
        run_file(queue, "worker-a", Clock(NOW), first, 1)
    assert run_file(queue, "worker-b", Clock(NOW + 999), second, 1) is None
    assert run_file(queue, "worker-b", Clock(NOW + 1000, DEADLINE - 1), second, 1, 60_000) == {
        "id": "job-1",
        "token": 2,
        "status": "done",
    }
    assert first.sent == second.sent == [{"id": "job-1", "qty": 7}]
