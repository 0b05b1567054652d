"""deliver: one job a record, done and processed together, or put in step by the next pass."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import Permanent, Retryable, UnusableFile, jobs
from lease.errors import BadAck
from lease.outbox import (
    Delivered,
    Record,
    Tally,
    _deliver,
    _feed,
    apply,
    deliver,
    document,
    list_pending,
    open_outbox,
    pending,
    prune,
    record,
)
from tests.outbox.test_relay import Script
from tests.support.outbox import Killed, committed, deliveries, no_effect, rows
from tests.support.queue import all_jobs, without_waiting, writing
from tests.support.refused import IDENTIFIERS, SEQS, integers, table

_ANOTHER_JOB = (
    "the queue has another job of the id a; the record stays pending: record it under another id"
)


class Clock:
    """A clock that goes on by a millisecond each time it is read."""

    now_ms = 1_000_000

    def __call__(self) -> int:
        """Return the present."""
        self.now_ms += 1
        return self.now_ms


class Sends(list[str]):
    """A sender that keeps the ids, and answers as it was told for each, True at last."""

    def __init__(self, **answers: list[Any]) -> None:
        super().__init__()
        self._answers = answers

    def __call__(self, each: Record) -> object:
        """Answer, or raise."""
        self.append(each["id"])
        left = self._answers.get(each["id"]) or [True]
        answer = left.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(params=["one file", "two files"])
def queue(
    request: pytest.FixtureRequest, tmp_path: Path, box: sqlite3.Connection
) -> Iterator[sqlite3.Connection]:
    """The queue beside the outbox, or in a file of its own."""
    if request.param == "one file":
        jobs.create_queue(box)
        yield box
    else:
        with closing(jobs.open_queue(tmp_path / "queue.db")) as con:
            yield con


def run(box: sqlite3.Connection, queue: sqlite3.Connection, send: Any, **options: Any) -> Tally:
    """Deliver until nothing can be done, with no wait between two attempts."""
    options = {"owner": "d", "until": "drained", "clock": Clock(), "jitter": lambda: 0} | options
    return deliver(box, send, queue=queue, **options)


def states(box: sqlite3.Connection, queue: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    """Return each record's state with its job's."""
    of = {job["id"]: job["status"] for job in all_jobs(queue)}
    return [(row["id"], row["state"], of.get(row["id"])) for row in rows(box)]


def test_deliver_sends_each_record_once(box: sqlite3.Connection, queue: sqlite3.Connection):
    """Each record goes out in order, becomes processed, and its job is done under its id."""
    for name in "abc":
        record(box, "made", {"n": name}, id=name)
    send = Sends()

    assert run(box, queue, send) == Tally(done=3)
    assert send == ["a", "b", "c"]
    assert states(box, queue) == [(name, "processed", "done") for name in "abc"]
    assert [row[:2] for row in deliveries(box)] == [(name, f'{{"n":"{name}"}}') for name in "abc"]
    assert {job["qty"] for job in all_jobs(queue)} == {1}
    assert rows(box)[0]["processed_at"].startswith("1970-01-01T00:16:40.0")


def test_deliver_over_many_pages(
    box: sqlite3.Connection, queue: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
):
    """More records than a page are delivered as well, page after page."""
    monkeypatch.setattr(_feed, "PAGE", 3)
    monkeypatch.setattr(_deliver, "PAGE", 3)
    names = [f"r-{n}" for n in range(8)]
    for name in names:
        record(box, "made", {}, id=name)
    send = Sends()

    assert run(box, queue, send) == Tally(done=8)
    assert send == names
    assert pending(box) == []


def test_deliver_again_does_nothing(box: sqlite3.Connection, queue: sqlite3.Connection):
    """What was delivered is not sent again."""
    record(box, "made", {}, id="a")
    run(box, queue, Sends())
    send = Sends()

    assert run(box, queue, send) == Tally()
    assert send == []


def test_deliver_gives_the_whole_record(box: sqlite3.Connection, queue: sqlite3.Connection):
    """The sender gets id, type and payload; on the wire the payload is a document."""
    made = record(box, "made", {"b": 1, "a": [None]}, id="a")
    got = []
    run(box, queue, lambda each: got.append(each) or True)

    assert got == [made]
    assert document(made) == {"id": "a", "event_type": "made", "payload": {"a": [None], "b": 1}}


def test_deliver_sends_outside_every_transaction(
    box: sqlite3.Connection, queue: sqlite3.Connection, outbox_path: Path
):
    """Nobody waits for a receiver while a lock is held."""
    record(box, "made", {}, id="a")

    def send(_each: Record) -> bool:
        with writing(outbox_path):
            return not box.in_transaction

    assert run(box, queue, send) == Tally(done=1)


def test_deliver_tries_again(box: sqlite3.Connection, queue: sqlite3.Connection):
    """A failure that may pass is tried again; the error is told with the result."""
    record(box, "made", {}, id="a")
    error = Retryable("away")
    told: list[Delivered] = []

    assert run(box, queue, Sends(a=[error, True]), on_result=told.append) == Tally(1, 1)
    assert told == [("a", "pending", error), ("a", "done", None)]
    assert states(box, queue) == [("a", "processed", "done")]


def test_deliver_leaves_dead_records_pending(box: sqlite3.Connection, queue: sqlite3.Connection):
    """What cannot be delivered stays pending and visible; redrive revives it."""
    for name in "abc":
        record(box, "made", {}, id=name)
    send = Sends(a=[Permanent("no")], b=[Retryable("away")] * 2)

    assert run(box, queue, send, max_attempts=2) == Tally(done=1, pending=1, dead=2)
    assert states(box, queue) == [
        ("a", "pending", "dead"),
        ("b", "pending", "dead"),
        ("c", "processed", "done"),
    ]
    listed = list_pending(box, queue)
    assert [(each["id"], each["job"], each["reason"]) for each in listed] == [
        ("a", "dead", "permanent"),
        ("b", "dead", "exhausted"),
    ]
    assert run(box, queue, send, max_attempts=2) == Tally()
    jobs.redrive(queue, "a", 1_000_000, 60_000, "mended")
    assert run(box, queue, send) == Tally(done=1)
    assert states(box, queue)[0] == ("a", "processed", "done")


def test_deliver_buries_what_is_late(box: sqlite3.Connection, queue: sqlite3.Connection):
    """A record that could not be delivered in its time stays pending with a dead job."""
    record(box, "made", {}, id="a")
    clock = Clock()

    def send(_each: Record) -> bool:
        clock.now_ms += 500
        raise Retryable("away")

    run(box, queue, send, ttl_ms=1000, clock=clock)
    assert list_pending(box, queue)[0]["reason"] == "deadline"


@pytest.mark.parametrize("answer", [False, None, "yes", 1, RuntimeError("broken"), KeyError("x")])
def test_deliver_goes_on_after_a_strange_answer(
    box: sqlite3.Connection, queue: sqlite3.Connection, answer: Any
):
    """An answer that is none leaves the lease to run out, is told, and stops no other record."""
    for name in "ab":
        record(box, "made", {}, id=name)
    told: list[Delivered] = []
    send = Sends(a=[answer, True])

    assert run(box, queue, send, lease_ms=2, poll_ms=1, on_result=told.append).done == 2
    assert send.count("a") == 2
    (first,) = [each for each in told if each.status == "leased"]
    assert first.id == "a"
    assert first.error is answer or isinstance(first.error, BadAck)
    assert states(box, queue) == [("a", "processed", "done"), ("b", "processed", "done")]


def test_deliver_tells_of_a_stale_send(box: sqlite3.Connection, queue: sqlite3.Connection):
    """A send that took longer than its lease is not recorded, and repeated."""
    record(box, "made", {}, id="a")
    clock = Clock()
    told: list[Delivered] = []

    def send(_each: Record) -> bool:
        if not told:
            clock.now_ms += 100
        return True

    run(box, queue, send, clock=clock, lease_ms=50, on_result=told.append)
    assert told == [("a", "stale", None), ("a", "done", None)]


def test_deliver_is_ended_by_death(box: sqlite3.Connection, queue: sqlite3.Connection):
    """What is no Exception ends the run; the next one sends again, and marks once."""
    record(box, "made", {}, id="a")
    clock = Clock()
    with pytest.raises(Killed):
        run(box, queue, Sends(a=[Killed()]), clock=clock)
    assert states(box, queue) == [("a", "pending", "leased")]
    clock.now_ms += 30_000

    assert run(box, queue, Sends(), clock=clock) == Tally(done=1)
    assert len(deliveries(box)) == 1


def test_deliver_marks_in_the_transaction_of_the_finish(box: sqlite3.Connection, outbox_path: Path):
    """In one file no moment shows a job that is done with a record that is pending."""
    record(box, "made", {}, id="a")
    said: list[str] = []

    def send(_each: Record) -> bool:
        box.set_trace_callback(said.append)
        return True

    run(box, None, send)  # type: ignore[arg-type]  # the jobs beside the outbox
    box.set_trace_callback(None)
    finish = "\n".join(said[said.index("BEGIN IMMEDIATE") : said.index("COMMIT")])

    assert "UPDATE jobs" in finish
    assert "UPDATE outbox" in finish
    assert "INSERT INTO deliveries" in finish
    assert committed(outbox_path)[0][0]["state"] == "processed"


def test_deliver_puts_two_files_in_step(box: sqlite3.Connection, tmp_path: Path):
    """A death between done and processed is mended by the next pass, without a second send."""
    record(box, "made", {}, id="a", clock=lambda: 1_000_000)
    with closing(jobs.open_queue(tmp_path / "queue.db")) as queue:
        jobs.enqueue(queue, {"id": "a", "qty": 1}, 1_000_000, 60_000)
        jobs.run_once(queue, "dead", Clock(), lambda _event: True, 0)
        assert states(box, queue) == [("a", "pending", "done")]
        send = Sends()

        assert run(box, queue, send) == Tally()
        assert send == []
        assert states(box, queue) == [("a", "processed", "done")]
        assert run(box, queue, send) == Tally()
        assert len(deliveries(box)) == 1


@pytest.mark.parametrize(
    ("recorded_ms", "state"), [(1_000_002, "processed"), (1_000_003, "pending")]
)
def test_deliver_tells_a_job_that_was_done_before_its_record(
    box: sqlite3.Connection,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    recorded_ms: int,
    state: str,
):
    """No event is taken for sent because of a job that was somebody else's."""
    with closing(jobs.open_queue(tmp_path / "queue.db")) as queue:
        jobs.enqueue(queue, {"id": "a", "qty": 1}, 1_000_000, 60_000)
        jobs.run_once(queue, "dead", Clock(), lambda _event: True, 0)
        record(box, "made", {}, id="a", clock=lambda: recorded_ms)

        assert run(box, queue, Sends()) == Tally()
        assert states(box, queue) == [("a", state, "done")]
    assert caplog.messages == [_ANOTHER_JOB] * (state == "pending")


def test_feeder_leaves_alone_what_took_effect_meanwhile(
    box: sqlite3.Connection, queue: sqlite3.Connection, caplog: pytest.LogCaptureFixture
):
    """A record that was pending when it was listed, and is no longer, is nothing to report."""
    made = record(box, "made", {}, id="a", clock=lambda: 1_000_000)
    jobs.enqueue(queue, {"id": "a", "qty": 1}, 1_000_000, 60_000)
    jobs.run_once(queue, "another", Clock(), lambda _event: True, 0)
    apply(box, made, no_effect)

    assert not _feed.Feeder(box, queue, Clock(), 60_000, 3).feed([made])
    assert caplog.messages == []


def test_deliver_does_not_lose_what_is_recorded_again_after_prune(
    box: sqlite3.Connection, queue: sqlite3.Connection, caplog: pytest.LogCaptureFixture
):
    """The job of a record that was pruned is not that of a new record of the same id."""
    record(box, "made", {"n": 1}, id="a", clock=lambda: 1_000_000)
    assert run(box, queue, Sends()) == Tally(done=1)
    assert prune(box, 2_000_000, 10) == 1
    record(box, "made", {"n": 2}, id="a", clock=lambda: 3_000_000)

    assert run(box, queue, Sends()) == Tally()
    assert states(box, queue) == [("a", "pending", "done")]
    assert caplog.messages == [_ANOTHER_JOB]


def test_deliver_does_not_send_what_took_effect(box: sqlite3.Connection, queue: sqlite3.Connection):
    """A record that was applied while its job waited is not sent."""
    made = record(box, "made", {}, id="a")
    jobs.enqueue(queue, {"id": "a", "qty": 1}, 1_000_000, 60_000)
    apply(box, made, no_effect)
    send = Sends()

    assert run(box, queue, send) == Tally(done=1)
    assert send == []
    assert len(deliveries(box)) == 1


def test_deliver_buries_a_job_without_a_record(box: sqlite3.Connection, queue: sqlite3.Connection):
    """A stranger's job is quarantined with a reason, not sent and not tried for ever."""
    jobs.enqueue(queue, {"id": "stranger", "qty": 1}, 1_000_000, 60_000)
    told: list[Delivered] = []

    assert run(box, queue, Sends(), on_result=told.append) == Tally(dead=1)
    assert str(told[0].error) == "the outbox has no record stranger"


def test_deliver_reports_a_stranger_with_the_same_id(
    box: sqlite3.Connection, queue: sqlite3.Connection, caplog: pytest.LogCaptureFixture
):
    """A job of another quantity is not the record's; the record stays pending, told once."""
    for name in "ab":
        record(box, "made", {}, id=name)
    jobs.enqueue(queue, {"id": "a", "qty": 7}, 1, 1)

    assert run(box, queue, Sends()) == Tally(done=1)
    assert pending(box)[0]["id"] == "a"
    assert caplog.messages == [_ANOTHER_JOB]


def test_deliver_reports_a_stranger_that_was_quicker(
    box: sqlite3.Connection,
    queue: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    """Another job that takes the id between the look and the intake is told in the same way."""
    record(box, "made", {}, id="a")
    jobs.enqueue(queue, {"id": "a", "qty": 7}, 1, 1)
    monkeypatch.setattr(_feed, "job_of", lambda _queue, _record_id: None)

    assert run(box, queue, Sends()) == Tally()
    assert caplog.messages == [_ANOTHER_JOB]


def test_deliver_waits_for_a_lock(
    box: sqlite3.Connection, outbox_path: Path, caplog: pytest.LogCaptureFixture
):
    """A database that is locked is waited for, and nothing is lost."""
    record(box, "made", {}, id="a")
    jobs.create_queue(box)
    without_waiting(box)
    with writing(outbox_path) as other:
        stop = Script(lambda: other.execute("ROLLBACK"), lambda: None)
        assert run(box, box, Sends(), until="stopped", stop=stop, poll_ms=7) == Tally(done=1)
    assert stop.waits == [0.007] * 3
    assert caplog.messages == ["database is locked; waiting for it"]


def test_deliver_survives_a_lock_after_the_send(box: sqlite3.Connection, outbox_path: Path):
    """A result that cannot be recorded is told; the record is sent again when its lease ends."""
    record(box, "made", {}, id="a")
    jobs.create_queue(box)
    without_waiting(box)
    locks: list[Any] = []
    told: list[Delivered] = []

    def send(_each: Record) -> bool:
        if not locks:
            locks.append(writing(outbox_path))
            locks[0].__enter__()
        return True

    def result(each: Delivered) -> None:
        told.append(each)
        if len(told) == 1:
            locks[0].__exit__(None, None, None)

    assert run(box, box, send, lease_ms=5, poll_ms=1, on_result=result) == Tally(done=1, leased=1)
    assert [each.status for each in told] == ["leased", "done"]
    assert isinstance(told[0].error, sqlite3.OperationalError)


def test_deliver_does_not_hide_a_broken_database(tmp_path: Path, box: sqlite3.Connection):
    """What does not pass by itself comes out, before and after a send."""
    record(box, "made", {}, id="a")
    with closing(sqlite3.connect(tmp_path / "empty.db", isolation_level=None)) as empty:
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            run(box, empty, Sends())
        jobs.create_queue(empty)

        def send(_each: Record) -> bool:
            empty.execute("DROP TABLE redrives")
            empty.execute("ALTER TABLE jobs RENAME TO gone")
            return True

        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            run(box, empty, send)


def test_deliver_is_stopped_after_the_job_in_hand(
    box: sqlite3.Connection, queue: sqlite3.Connection
):
    """A stop during a send lets that one be recorded, and sends no other."""
    for name in "ab":
        record(box, "made", {}, id=name)
    stop = Script()

    def send(_each: Record) -> bool:
        stop.set()
        return True

    assert run(box, queue, send, until="stopped", stop=stop) == Tally(done=1)
    assert states(box, queue)[1] == ("b", "pending", "pending")
    assert run(box, queue, send, stop=stop) == Tally()


def test_deliver_waits_when_idle(box: sqlite3.Connection, queue: sqlite3.Connection):
    """It looks again after the poll, or when the next job is due, and finds what came meanwhile."""
    record(box, "made", {}, id="a")
    clock = Clock()
    later: list[Callable[[], object]] = [
        lambda: record(box, "made", {}, id="b"),
        lambda: setattr(clock, "now_ms", clock.now_ms + 10_000),
    ]
    stop = Script(*later, lambda: None)
    send = Sends(b=[Retryable("away"), True])
    done = run(
        box,
        queue,
        send,
        until="stopped",
        stop=stop,
        clock=clock,
        jitter=lambda: 1,
        base_ms=5_000,
        poll_ms=60_000,
    )

    assert done == Tally(done=2, pending=1)
    assert stop.waits[0] == stop.waits[2] == 60
    assert 4.9 < stop.waits[1] < 5


def test_deliver_makes_the_jobs_beside_the_outbox(outbox_path: Path):
    """Without a queue the tables come into the outbox's file, whose settings stay."""
    with closing(open_outbox(outbox_path)) as con:
        record(con, "made", {}, id="a")

        assert run(con, None, Sends()) == Tally(done=1)  # type: ignore[arg-type]  # as said
        assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert states(con, con) == [("a", "processed", "done")]


def test_deliver_refuses_an_application_with_jobs(box: sqlite3.Connection):
    """A table of that name is the application's."""
    box.execute("CREATE TABLE jobs (title TEXT)")

    with pytest.raises(UnusableFile):
        deliver(box, Sends(), owner="d")


def test_deliver_has_a_clock_and_a_stop_of_its_own(box: sqlite3.Connection):
    """The wall clock and never are what is left out."""
    record(box, "made", {}, id="a")

    assert deliver(box, Sends(), owner="d", until="drained") == Tally(done=1)
    assert rows(box)[0]["processed_at"] > "2026"


@pytest.mark.parametrize(
    ("argument", "value"),
    table(
        owner=IDENTIFIERS,
        ttl_ms=integers(1, 90 * 86_400_000),
        max_attempts=integers(1, 1000),
        lease_ms=integers(1, 86_400_000),
        base_ms=integers(1, 86_400_000),
        cap_ms=integers(1000, 86_400_000),
        poll_ms=integers(1, 86_400_000),
    ),
)
def test_deliver_refuses(box: sqlite3.Connection, argument: str, value: Any):
    """An unusable argument is refused before a table is made."""
    with pytest.raises(ValueError, match=f"{argument} must be"):
        deliver(box, Sends(), **({"owner": "d"} | {argument: value}))
    assert not box.execute("SELECT 1 FROM sqlite_schema WHERE name = 'jobs'").fetchall()


def test_list_pending_pages(box: sqlite3.Connection):
    """Pages follow each other by seq; without a queue nothing is said of jobs."""
    for name in "abc":
        record(box, "made", {}, id=name, clock=lambda: 5)

    first = list_pending(box, max_rows=2)
    assert [each["id"] for each in first] == ["a", "b"]
    assert list_pending(box, after_seq=first[-1]["seq"]) == [
        {
            "seq": 3,
            "id": "c",
            "event_type": "made",
            "created_at": "1970-01-01T00:00:00.005+00:00",
            "dispatch_count": 0,
            "dispatched_at": None,
            "job": None,
            "reason": None,
        }
    ]


@pytest.mark.parametrize(("argument", "value"), table(after_seq=SEQS, max_rows=integers(1, 10_000)))
def test_list_pending_refuses(box: sqlite3.Connection, argument: str, value: Any):
    """A page is an exact int within bounds."""
    with pytest.raises(ValueError, match=f"{argument} must be an int"):
        list_pending(box, **{argument: value})
