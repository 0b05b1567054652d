"""A run, many sends at a time: who claims, records and tells when, and how it all ends."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from lease import WIDE, Event, Permanent, Retryable, jobs
from lease.dispatcher import Dispatcher, Result, Tally, _work
from lease.dispatcher._hand import Hand
from lease.dispatcher._mail import Answer, Mail
from lease.dispatcher._renewals import Renewals
from lease.dispatcher._senders import SenderThreads, senders
from tests.support.cli import until
from tests.support.dispatcher import (
    Sender,
    Sends,
    Signal,
    Start,
    Stopper,
    Time,
    locked_for,
    our_threads,
    raising,
)
from tests.support.processes import DEADLINE_S, output, run_code
from tests.support.queue import NOW, all_jobs, job, put_leased, put_pending, ticket_of
from tests.support.refused import integers, table

DAY = 86_400_000


def put_many(con: sqlite3.Connection, count: int) -> None:
    for number in range(1, count + 1):
        put_pending(con, id=f"job-{number}", deadline=DAY)


def states(con: sqlite3.Connection) -> list[str]:
    return [each["status"] for each in all_jobs(con)]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    """Whatever a run has started ends with it."""
    yield
    assert our_threads() == []


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many results each transaction records, and how many jobs it may claim."""
    seen: list[tuple[int, int]] = []
    finish, fused = jobs.finish_many, jobs.finish_and_claim

    def finish_many(con: Any, results: Any, *args: Any, **options: Any) -> Any:
        seen.append((len(results), 0))
        return finish(con, results, *args, **options)

    def finish_and_claim(con: Any, results: Any, owner: str, now: int, count: int, *args: Any, **o):
        seen.append((len(results), count))
        return fused(con, results, owner, now, count, *args, **o)

    monkeypatch.setattr(jobs, "finish_many", finish_many)
    monkeypatch.setattr(jobs, "finish_and_claim", finish_and_claim)
    return seen


@pytest.fixture
def endless_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a result wait for all others that are to come, however long they take."""
    monkeypatch.setattr(_work, "monotonic", lambda: 0.0)


def test_run_sends_so_many_jobs_at_a_time(con: sqlite3.Connection, start: Start) -> None:
    """Sends meet each other, and never more of them than were asked for."""
    put_many(con, 12)
    meeting = threading.Barrier(4, timeout=DEADLINE_S)
    inside: set[int] = set()
    most: list[int] = []

    def send(_event: Event) -> bool:
        inside.add(threading.get_ident())
        most.append(len(inside))
        meeting.wait()
        inside.discard(threading.get_ident())
        return True

    assert start(send, concurrency=4).run("drained") == Tally(done=12)
    assert max(most) == 4


def test_run_claims_what_free_senders_can_take(con: sqlite3.Connection, start: Start) -> None:
    """While every sender is busy the other jobs are left to other workers."""
    put_many(con, 5)
    meeting = threading.Barrier(2, timeout=DEADLINE_S)
    seen: list[list[str]] = []

    def send(_event: Event) -> bool:
        if meeting.wait() == 0:
            with closing(sqlite3.connect(path)) as other:
                seen.append(states(other))
            worker.stop()
        meeting.wait()
        return True

    path = con.execute("PRAGMA database_list").fetchone()[2]
    worker = start(send, concurrency=2)

    assert worker.run() == Tally(done=2)
    assert seen == [["leased"] * 2 + ["pending"] * 3]
    assert states(con) == ["done"] * 2 + ["pending"] * 3


def test_run_goes_on_beside_a_slow_send(con: sqlite3.Connection, start: Start) -> None:
    """A sender that is free takes one job after the other."""
    put_many(con, 6)
    rest = Signal()
    results: list[str] = []

    def told(result: Result) -> None:
        results.append(result.id)
        if len(results) == 5:
            rest.set()

    worker = start(Sends(**{"job-1": rest}), concurrency=2, on_result=told)

    assert worker.run("drained") == Tally(done=6)
    assert results == ["job-2", "job-3", "job-4", "job-5", "job-6", "job-1"]


@pytest.mark.usefixtures("endless_flush")
def test_run_records_and_claims_in_one_transaction(
    con: sqlite3.Connection, start: Start, batches: list[tuple[int, int]]
) -> None:
    """What was sent together is recorded together, and together with what is sent next."""
    put_many(con, 8)

    assert start(Sender(), concurrency=4).run("drained") == Tally(done=8)
    assert batches == [(0, 4), (4, 4), (4, 4)]


def test_run_waits_for_company_no_longer_than_asked(
    con: sqlite3.Connection, start: Start, batches: list[tuple[int, int]]
) -> None:
    """A result is recorded although others are still to come."""
    put_many(con, 3)
    first = Signal()
    worker = start(
        Sends(**{"job-1": first, "job-2": first}),
        concurrency=3,
        flush_ms=10,
        on_result=lambda _result: first.set(),
    )

    assert worker.run("drained") == Tally(done=3)
    assert batches[:2] == [(0, 3), (1, 1)]


@pytest.mark.parametrize(
    ("flush_ms", "lease_ms", "waits"),
    [(0, 1000, []), (10, 1000, [0.01]), (10, 79, [0.009]), (10, 7, [])],
)
def test_run_waits_for_company_no_longer_than_a_lease_bears(
    con: sqlite3.Connection,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    flush_ms: int,
    lease_ms: int,
    waits: list[float],
) -> None:
    """A short lease makes for a short wait."""
    timeouts: list[float | None] = []
    readings = iter([0.0, 0.0, 1.0])

    class Recording(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            if self.empty():
                timeouts.append(timeout)
            return self.get_nowait()

    monkeypatch.setattr(_work, "monotonic", lambda: next(readings))
    mail: Mail = Recording()
    work = _work.Work(start(Sender(), flush_ms=flush_ms, lease_ms=lease_ms)._options, 2, mail)
    work.out = 2
    mail.put(Answer(Hand(ticket_of(put_leased(con)), is_clipped=False), "ok", None))

    work.gather(None)

    assert timeouts == waits


def test_run_calls_back_in_its_own_thread(con: sqlite3.Connection, start: Start) -> None:
    """Only the sends are in other threads, each in one of its own."""
    put_many(con, 2)
    senders: set[int] = set()
    meeting = threading.Barrier(2, timeout=DEADLINE_S)
    callers: set[int] = set()

    def send(_event: Event) -> bool:
        senders.add(threading.get_ident())
        meeting.wait()
        return True

    def idle(_due_in_ms: int | None) -> None:
        callers.add(threading.get_ident())
        worker.stop()

    worker = start(
        send,
        concurrency=2,
        on_result=lambda _result: callers.add(threading.get_ident()),
        on_idle=idle,
    )
    worker.run()

    assert callers == {threading.get_ident()}
    assert len(senders - callers) == 2


@pytest.mark.parametrize(("concurrency", "until"), [(1, "drained"), (8, "once")])
def test_run_of_one_send_at_a_time_sends_in_its_own_thread(
    con: sqlite3.Connection, start: Start, concurrency: int, until: Any
) -> None:
    """A sender that is bound to its thread can be used."""
    put_many(con, 2)
    threads: set[int] = set()

    def send(_event: Event) -> bool:
        threads.add(threading.get_ident())
        return True

    tally = start(send, concurrency=concurrency).run(until)

    assert threads == {threading.get_ident()}
    assert tally.done == (2 if until == "drained" else 1)


def test_run_of_one_send_at_a_time_tells_before_it_sends(
    con: sqlite3.Connection, start: Start
) -> None:
    """A result is told while the next job is in hand, claimed together, and before its send."""
    put_many(con, 3)
    seen: list[tuple[str, list[str]]] = []
    worker = start(
        lambda event: seen.append((f"send {event['id']}", states(con))) is None,
        on_result=lambda result: seen.append((f"told {result.id}", states(con))),
    )

    assert worker.run("drained") == Tally(done=3)
    assert seen == [
        ("send job-1", ["leased", "pending", "pending"]),
        ("told job-1", ["done", "leased", "pending"]),
        ("send job-2", ["done", "leased", "pending"]),
        ("told job-2", ["done", "done", "leased"]),
        ("send job-3", ["done", "done", "leased"]),
        ("told job-3", ["done", "done", "done"]),
    ]


def test_run_of_one_send_at_a_time_takes_one_commit_a_job(
    con: sqlite3.Connection, start: Start, batches: list[tuple[int, int]]
) -> None:
    """Each result is recorded together with the next claim."""
    put_many(con, 3)

    assert start(Sender()).run("drained") == Tally(done=3)
    assert batches == [(0, 1), (1, 1), (1, 1), (1, 1)]


def test_run_of_one_send_at_a_time_ends_after_the_job_in_hand(
    con: sqlite3.Connection, start: Start
) -> None:
    """Whoever stops it when told of a job gets the one sent that is claimed, and no other."""
    put_many(con, 3)
    stop = Stopper()
    stop.worker = worker = start(Sender(), on_result=stop)

    assert worker.run() == Tally(done=2)
    assert states(con) == ["done", "done", "pending"]


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), KeyboardInterrupt()])
def test_run_of_one_send_at_a_time_is_ended_by_a_callback_after_the_job_in_hand(
    con: sqlite3.Connection, start: Start, error: BaseException
) -> None:
    """It is sent and recorded, which is told nobody."""
    put_many(con, 3)
    sender = Sender()

    with pytest.raises(type(error)) as caught:
        start(sender, on_result=raising(error)).run()

    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert [event["id"] for event in sender.sent] == ["job-1", "job-2"]
    assert states(con) == ["done", "done", "pending"]


@pytest.mark.parametrize(
    ("passed_ms", "tally", "sent"),
    [(999, Tally(done=2), ["job-1", "job-2"]), (1000, Tally(done=1, stale=1), ["job-1"])],
)
def test_run_of_one_send_at_a_time_sends_nothing_after_its_lease(
    con: sqlite3.Connection,
    start: Start,
    time: Time,
    passed_ms: int,
    tally: Tally,
    sent: list[str],
) -> None:
    """Whoever is told may take longer than the job in hand lives, whose lease ends with it."""
    put_pending(con, id="job-1", deadline=DAY)
    put_pending(con, id="job-2", deadline=NOW + 1000)
    sender = Sender()
    results: list[tuple[str, str]] = []

    def tell(result: Result) -> None:
        if not results:
            time.now_ms += passed_ms
        results.append((result.id, result.status))

    assert start(sender, lease_ms=DAY, on_result=tell).run("drained") == tally
    assert [event["id"] for event in sender.sent] == sent
    assert results == [("job-1", "done"), ("job-2", "done" if len(sent) == 2 else "stale")]


def test_run_of_one_send_at_a_time_sends_nothing_that_another_worker_has(
    con: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a renewal found to be lost while the result before it was told is not sent."""
    put_many(con, 2)
    kept: list[Hand] = []
    keep = Renewals.keep

    def watch(renewals: Renewals, ticket: Any, now_ms: int) -> Hand:
        kept.append(keep(renewals, ticket, now_ms))
        return kept[-1]

    def lose(_result: Result) -> None:
        kept[-1].is_lost = True
        worker.stop()

    monkeypatch.setattr(Renewals, "keep", watch)
    sender = Sender()
    worker = start(sender, on_result=lose)

    assert worker.run() == Tally(done=1, stale=1)
    assert [event["id"] for event in sender.sent] == ["job-1"]


def test_run_of_one_send_at_a_time_is_ended_by_its_clock(
    con: sqlite3.Connection, start: Start, time: Time
) -> None:
    """The job in hand is not sent when nobody knows whether it may be; its lease runs out."""
    put_many(con, 2)
    sender = Sender()

    def break_the_clock(_result: Result) -> None:
        time.now_ms = -1

    with pytest.raises(ValueError, match=r"clock\(\) must be") as caught:
        start(sender, on_result=break_the_clock).run()

    assert len(caught.value.__notes__) == 1
    assert [event["id"] for event in sender.sent] == ["job-1"]
    assert states(con) == ["done", "leased"]


def test_run_tells_each_its_own_result(con: sqlite3.Connection, start: Start) -> None:
    """What came together is told apart."""
    put_many(con, 4)
    meeting = threading.Barrier(4, timeout=DEADLINE_S)
    ended = {
        "job-2": Retryable("busy"),
        "job-3": Permanent("gone"),
        "job-4": ZeroDivisionError("a bug"),
    }
    results: dict[str, Result] = {}

    def send(event: Event) -> bool:
        meeting.wait()
        if event["id"] in ended:
            raise ended[event["id"]]
        return True

    def told(result: Result) -> None:
        results[result.id] = result
        worker.stop()

    worker = start(send, concurrency=4, on_result=told)

    assert worker.run() == Tally(done=1, pending=1, dead=1, leased=1)
    assert {name: each.status for name, each in results.items()} == {
        "job-1": "done",
        "job-2": "pending",
        "job-3": "dead",
        "job-4": "leased",
    }
    assert {name: each.error for name, each in results.items()} == {"job-1": None, **ended}
    assert states(con) == ["done", "pending", "dead", "leased"]


def test_run_is_not_idle_while_it_sends(
    con: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free sender looks for jobs now and then, but nobody is told that nothing happens."""
    put_pending(con, id="job-1")
    looks: list[None] = []
    third = Signal()
    next_due = jobs.next_due

    def look(con: sqlite3.Connection) -> int | None:
        looks.append(None)
        if len(looks) == 3:
            third.set()
        return next_due(con)

    monkeypatch.setattr(jobs, "next_due", look)
    idle: list[int | None] = []

    worker = start(Sends(**{"job-1": third}), concurrency=2, on_idle=idle.append)

    assert worker.run("drained") == Tally(done=1)
    assert idle == []


def test_run_waits_for_a_send_whose_job_is_gone(
    con: sqlite3.Connection, start: Start, queue_path: Path
) -> None:
    """A queue without an open job is not drained while a send is on its way."""
    put_pending(con, id="job-1")
    asked = Signal()

    def send() -> bool:
        with closing(sqlite3.connect(queue_path, isolation_level=None)) as other:
            other.execute("DELETE FROM jobs")
        return asked()

    worker = start(Sends(**{"job-1": send}), concurrency=2, jitter=lambda: asked.set() or 1.0)

    assert worker.run("drained") == Tally(stale=1)


def test_stop_lets_every_send_in_hand_end(con: sqlite3.Connection, start: Start) -> None:
    """What is being sent is recorded, and nothing is begun."""
    put_many(con, 6)
    meeting = threading.Barrier(3, timeout=DEADLINE_S)

    def send(_event: Event) -> bool:
        worker.stop()
        meeting.wait()
        return True

    worker = start(send, concurrency=3)

    assert worker.run() == Tally(done=3)
    assert states(con) == ["done"] * 3 + ["pending"] * 3


def test_stop_during_a_look_lets_every_send_in_hand_end(
    con: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that has just found nothing to do does not wait for it any more."""
    put_pending(con, id="job-1", deadline=DAY)
    put_pending(con, id="job-2", deadline=DAY, available_at=NOW + 1000)
    stopped = Signal()
    next_due = jobs.next_due

    def look(con: sqlite3.Connection) -> int | None:
        due_ms = next_due(con)
        if due_ms is not None and due_ms > NOW:
            worker.stop()
            stopped.set()
        return due_ms

    monkeypatch.setattr(jobs, "next_due", look)
    worker = start(Sends(**{"job-1": stopped}), concurrency=2)

    assert worker.run() == Tally(done=1)
    assert states(con) == ["done", "pending"]


@pytest.mark.usefixtures("hasty")
def test_stop_during_a_lock_lets_every_send_in_hand_end(
    con: sqlite3.Connection,
    queue_path: Path,
    start: Start,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that cannot claim, and is told to stop, still waits for what it has."""
    put_pending(con, id="job-1", deadline=DAY)
    put_pending(con, id="job-2", deadline=DAY, available_at=NOW + 1)
    locked, last = Signal(), Signal()
    unlock: list[Callable[[object], None]] = []
    gather = _work.Work.gather

    def send() -> bool:
        unlock.append(locked_for(queue_path, 1))
        locked.set()
        time.now_ms += 1
        return last()

    def trouble(error: object) -> None:
        worker.stop()
        locked()
        unlock[0](error)

    def watch(work: _work.Work, timeout_s: float | None) -> None:
        if timeout_s is None:
            last.set()
        gather(work, timeout_s)

    monkeypatch.setattr(_work.Work, "gather", watch)
    worker = start(Sends(**{"job-1": send}), concurrency=2, on_trouble=trouble)

    assert worker.run() == Tally(done=1)
    assert states(con) == ["done", "pending"]


@pytest.mark.usefixtures("hasty", "endless_flush")
def test_run_gives_up_only_what_has_lost_its_lease_to_a_lock(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """Of two results that a lock holds up, the one whose lease lasts is recorded."""
    put_pending(con, id="job-1", deadline=NOW + 400)
    put_pending(con, id="job-2", deadline=DAY)
    meeting = threading.Barrier(2, timeout=DEADLINE_S)
    unlock: list[Callable[[object], None]] = []
    results: list[tuple[str, str]] = []

    def send(_event: Event) -> bool:
        if meeting.wait() == 0:
            unlock.append(locked_for(queue_path, 1))
        meeting.wait()
        return True

    def trouble(error: object) -> None:
        time.now_ms = NOW + 400
        if len(results) == 1:
            unlock[0](error)

    worker = start(
        send,
        concurrency=2,
        lease_ms=10_000,
        on_trouble=trouble,
        on_result=lambda result: results.append((result.id, result.status)),
    )

    assert worker.run("drained") == Tally(done=1, stale=1)
    assert results == [("job-1", "stale"), ("job-2", "done")]


# How a run ends that does not end well.


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_run_is_ended_by_a_send_that_raises_no_exception(
    con: sqlite3.Connection, start: Start, error: BaseException
) -> None:
    """It comes out as it is, once the other send has ended and is recorded."""
    put_many(con, 3)
    raised = Signal()
    results: list[Result] = []
    worker = start(
        Sends(**{"job-1": raising(error, raised), "job-2": raised}),
        concurrency=2,
        on_result=results.append,
        flush_ms=0,
    )

    with pytest.raises(type(error)) as caught:
        worker.run("drained")

    assert caught.value is error
    assert states(con)[:2] == ["leased", "done"]


def test_run_is_ended_by_a_callback_after_the_sends_in_hand(
    con: sqlite3.Connection, start: Start
) -> None:
    """They are recorded, which is told nobody, and nothing more is claimed."""
    put_many(con, 5)
    raised = Signal()
    error = ZeroDivisionError("a bug")
    told: list[Result] = []

    def tell(result: Result) -> None:
        told.append(result)
        raising(error, raised)()

    worker = start(
        Sends(**{"job-2": raised, "job-3": raised}), concurrency=2, on_result=tell, flush_ms=0
    )

    with pytest.raises(ZeroDivisionError) as caught:
        worker.run()

    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert [result.id for result in told] == ["job-1"]
    assert states(con) == ["done"] * 3 + ["pending"] * 2


def test_run_that_fails_twice_tells_the_first_error(con: sqlite3.Connection, start: Start) -> None:
    """What keeps the other sends from being recorded is a note to it, and they are left alone."""
    put_many(con, 3)
    raised, last = Signal(), Signal()

    def interrupt() -> None:
        raised()
        raise KeyboardInterrupt

    worker = start(
        Sends(**{"job-2": interrupt, "job-3": last}),
        concurrency=3,
        flush_ms=0,
        on_result=raising(ZeroDivisionError("a bug"), raised),
    )

    with pytest.raises(ZeroDivisionError) as caught:
        worker.run()

    assert caught.value.__notes__ == ["nor was every send in hand recorded: KeyboardInterrupt()"]
    assert states(con) == ["done", "leased", "leased"]
    until(lambda: len(our_threads()) == 1)

    last.set()
    until(lambda: our_threads() == [])


@pytest.mark.usefixtures("hasty")
def test_run_that_has_failed_bears_a_lock_in_silence(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """Nobody is told anything more; the send in hand is recorded all the same."""
    put_many(con, 2)
    raised = Signal()
    unlock: list[Callable[[object], None]] = []
    troubles: list[Exception] = []

    def send() -> bool:
        raised()
        unlock.append(locked_for(queue_path, 1))
        return True

    def jitter() -> float:
        if unlock:
            unlock.pop()(None)
        return 0

    worker = start(
        Sends(**{"job-2": send}),
        concurrency=2,
        flush_ms=0,
        jitter=jitter,
        on_result=raising(ZeroDivisionError("a bug"), raised),
        on_trouble=troubles.append,
    )

    with pytest.raises(ZeroDivisionError):
        worker.run()

    assert troubles == []
    assert states(con) == ["done", "done"]


def test_run_that_fails_for_its_file_says_so_once(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """A table that is gone is what comes out; that the rest cannot be recorded is a note."""
    put_many(con, 2)
    meeting = threading.Barrier(2, timeout=DEADLINE_S)

    def send(_event: Event) -> bool:
        if meeting.wait() == 0:
            with closing(sqlite3.connect(queue_path, isolation_level=None)) as other:
                other.execute("ALTER TABLE jobs RENAME TO work")
        meeting.wait()
        return True

    with pytest.raises(sqlite3.OperationalError, match="no such table") as caught:
        start(send, concurrency=2).run()

    assert len(caught.value.__notes__) == 1


def test_run_without_threads_claims_nothing(
    con: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that may start no more threads costs no job an attempt."""
    put_many(con, 3)
    begin = threading.Thread.start
    started: list[str] = []

    def start_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread.name)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)

    with pytest.raises(RuntimeError, match="new thread"):
        start(Sender(), concurrency=3).run()

    assert started == ["lease-renewals", "lease-sender-0"]
    assert states(con) == ["pending"] * 3


FORK_IN_A_SEND = """
import os, sys, threading, time
from lease import jobs
from lease.dispatcher import Dispatcher

path = sys.argv[1]
codes = []

def send(event):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        return True
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return True

print(Dispatcher(path, send, owner="w", concurrency=2, clock=lambda: 10_000).run("drained").done)
print(codes)
"""


def test_run_is_the_parent_s_alone_when_a_sender_forks(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """The child that returns from a send ends there; each job is recorded once."""
    put_many(con, 2)

    printed = output(run_code(FORK_IN_A_SEND, queue_path, flags=("-W", "ignore")))

    assert printed.splitlines()[0] == "2"
    assert [each["attempts"] for each in all_jobs(con)] == [1, 1]


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize(
    ("answer", "is_let_go"),
    [
        (True, False),
        (Retryable("busy"), False),
        (Permanent("gone"), False),
        (1, True),
        (ZeroDivisionError("a bug"), True),
        (KeyboardInterrupt(), True),
    ],
)
def test_senders_let_go_of_what_cannot_be_recorded(
    concurrency: int, answer: object, is_let_go: bool
) -> None:
    """From the end of its send on, such a job's lease is not renewed, whoever is held up."""
    mail = Mail()
    ticket: Any = {"id": "job-1", "qty": 1, "lease_until": NOW + 1}
    hand = Hand(ticket, is_clipped=False)
    sending = senders(concurrency, Sender(answer), mail, lambda: NOW)
    sending.start()
    sending.hand(hand)
    sending.lend()
    sending.end(is_idle=True)

    assert mail.get_nowait().hand is hand  # type: ignore[union-attr]  # an answer, hence of a hand
    assert hand.is_let_go == is_let_go


def test_a_sender_s_thread_ends_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says why, answers nobody, and sends nothing more."""
    errors: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: errors.append(args.exc_value))
    mail = Mail()
    sending = SenderThreads(1, Sender(), mail)
    sending._pid = -1
    sending.start()

    ticket: Any = {"id": "job-1", "qty": 1}
    sending.hand(Hand(ticket, is_clipped=False))
    sending.end(is_idle=True)

    assert [str(error).partition(";")[0] for error in errors] == [
        "a forked child must not use its parent's queue file"
    ]
    assert mail.empty()


def test_run_recovers_from_a_full_disk(
    con: sqlite3.Connection, queue_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, waited for like a lock, and costs no result."""
    put_many(con, 2)
    con.execute("CREATE TABLE ballast (bytes BLOB)")
    con.execute(
        "CREATE TRIGGER heavy AFTER UPDATE ON jobs WHEN NEW.status = 'done' "
        "BEGIN INSERT INTO ballast VALUES (zeroblob(1000000)); END"
    )
    opened = jobs.open_queue

    def open_small(path: Path, **options: Any) -> sqlite3.Connection:
        small = opened(path, **options)
        small.execute("PRAGMA max_page_count = 60")
        return small

    monkeypatch.setattr(jobs, "open_queue", open_small)
    troubles: list[str] = []

    def trouble(error: Exception) -> None:
        troubles.append(str(error))
        con.execute("DROP TRIGGER heavy")

    worker = start(Sender(), concurrency=2, on_trouble=trouble)

    assert worker.run("drained") == Tally(done=2)
    assert troubles == ["database or disk is full"]
    assert [each["attempts"] for each in all_jobs(con)] == [1, 1]


@pytest.mark.parametrize("lease_ms", [1, DAY])
def test_run_with_a_lease_at_its_limit(
    con: sqlite3.Connection, start: Start, lease_ms: int
) -> None:
    """The shortest and the longest lease serve, while time stands still."""
    put_many(con, 3)

    assert start(Sender(), concurrency=2, lease_ms=lease_ms).run("drained") == Tally(done=3)


def test_run_with_a_clock_at_its_limit(con: sqlite3.Connection, start: Start, time: Time) -> None:
    """The latest instant is one like any other; the one after it is refused."""
    time.now_ms = WIDE.max_now_ms
    put_pending(con, deadline=WIDE.max_now_ms + 1)
    assert start(Sender(), concurrency=2, lease_ms=DAY).run("drained") == Tally(done=1)

    time.now_ms += 1
    put_pending(con, id="job-2", deadline=WIDE.max_now_ms + 2)
    with pytest.raises(ValueError, match=r"^clock\(\) must be "):
        start(Sender(), concurrency=2).run("drained")
    assert job(con, "job-2")["status"] == "pending"


def test_dispatcher_keeps_two_runs_apart(con: sqlite3.Connection, start: Start) -> None:
    """An answer that a failed run did not wait for does not disturb the next run."""
    put_many(con, 1)
    worker = start(Sender(), concurrency=2)
    assert worker.run("drained") == Tally(done=1)
    worker._mail.put(ZeroDivisionError("an answer that came late"))

    put_pending(con, id="job-2")
    assert worker.run("drained") == Tally(done=1)


@pytest.mark.parametrize(
    ("argument", "value"), table(concurrency=integers(1, 1000), flush_ms=integers(0, 1000))
)
def test_dispatcher_refuses_a_number(tmp_path: Path, argument: str, value: object) -> None:
    """Unusable arguments are refused before any file is looked at."""
    options: dict[str, Any] = {"owner": "worker-b", argument: value}

    with pytest.raises(ValueError, match=f"^{argument} must be "):
        Dispatcher(tmp_path / "none.db", Sender(), **options)
