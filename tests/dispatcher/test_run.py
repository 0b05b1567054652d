"""A run, one send at a time: what each send leads to, when it ends, and what it bears."""

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from lease import BadAck, Event, Permanent, Retryable, UnusableFile, jobs
from lease.dispatcher import Dispatcher, Result, Tally, _dispatcher, _run
from tests.support.dispatcher import Sender, Start, Stopper, Time, locked_for
from tests.support.queue import (
    DEADLINE,
    NOW,
    all_jobs,
    descriptors,
    job,
    put_dead,
    put_leased,
    put_pending,
    reading,
    unchanged,
    writing,
)
from tests.support.refused import IDENTIFIERS, integers, table

DAY = 86_400_000


def test_run_delivers_all_jobs_in_order(con: sqlite3.Connection, start: Start) -> None:
    """Each job is sent once, with just its id and quantity, and is done."""
    put_pending(con, id="job-1", qty=1)
    put_pending(con, id="job-2", qty=2)
    send = Sender()

    assert start(send).run("drained") == Tally(done=2)

    assert send.sent == [{"id": "job-1", "qty": 1}, {"id": "job-2", "qty": 2}]
    assert [each["status"] for each in all_jobs(con)] == ["done", "done"]


def test_run_sends_outside_every_transaction(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """While a send is on its way others may write, and its lease is visible to them."""
    put_pending(con)
    seen: list[Any] = []

    def send(_event: Event) -> bool:
        with writing(queue_path):
            seen.append((job(con)["status"], job(con)["owner"]))
        return True

    start(send).run("drained")

    assert seen == [("leased", "worker-b")]


ERROR = ZeroDivisionError("a bug")


@pytest.mark.parametrize(
    ("answer", "status", "reason", "kind"),
    [
        pytest.param(True, "done", None, type(None), id="true"),
        pytest.param(Retryable("busy"), "pending", "retry", Retryable, id="retryable"),
        pytest.param(Permanent("gone"), "dead", "permanent", Permanent, id="permanent"),
        pytest.param(1, "leased", None, BadAck, id="one"),
        pytest.param(None, "leased", None, BadAck, id="none"),
        pytest.param(ERROR, "leased", None, ZeroDivisionError, id="bug"),
    ],
)
def test_run_records_what_a_send_came_to(
    con: sqlite3.Connection,
    start: Start,
    answer: object,
    status: str,
    reason: str | None,
    kind: type[object],
) -> None:
    """The result is told with its error, and the job's row says the same."""
    put_pending(con, token=6)
    results: list[Result] = []

    tally = start(Sender(answer), on_result=results.append).run("once")

    assert tally == Tally(**{status: 1})
    (result,) = results
    assert (result.id, result.token, result.attempt, result.status) == ("job-1", 7, 1, status)
    assert result.delay_ms == (1000 if status == "pending" else 0)
    assert type(result.error) is kind
    assert (job(con)["status"], job(con)["reason"]) == (status, reason)


def test_run_tells_a_result_once_it_is_recorded(con: sqlite3.Connection, start: Start) -> None:
    """Whoever is told may rely on the row."""
    put_pending(con)
    seen: list[str] = []

    start(Sender(), on_result=lambda _result: seen.append(job(con)["status"])).run("once")

    assert seen == ["done"]


def test_run_lets_no_job_stop_the_others(con: sqlite3.Connection, start: Start) -> None:
    """A sender's bug and a bad answer leave their leases to run out and are tried again."""
    put_pending(con, id="job-1")
    put_pending(con, id="job-2")
    put_pending(con, id="job-3")
    send = Sender(ERROR, "yes", True)

    assert start(send).run("drained") == Tally(done=3, leased=2)

    assert [event["id"] for event in send.sent] == ["job-1", "job-2", "job-3", "job-1", "job-2"]


def test_run_backs_off_by_attempt_jitter_and_cap(
    con: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each retry waits for its own share of a doubling delay."""
    put_pending(con, max_attempts=5, deadline=DAY)
    shares = iter([1.0, 0.25, 1.0, 1.0])
    results: list[Result] = []
    worker = start(
        Sender(*[Retryable("busy")] * 4),
        base_ms=100,
        cap_ms=300,
        jitter=lambda: next(shares),
        on_result=results.append,
    )
    # It would draw shares as well.
    monkeypatch.setattr(_run.Run, "_pause_s", lambda *_: 0)

    assert worker.run("drained") == Tally(done=1, pending=4)

    assert [result.delay_ms for result in results] == [100, 50, 300, 300, 0]
    assert [result.attempt for result in results] == [1, 2, 3, 4, 5]


def test_run_buries_a_job_that_has_run_out(con: sqlite3.Connection, start: Start) -> None:
    """A run that only has to quarantine does so, sends nothing and is drained."""
    put_pending(con, id="tired", attempts=3)
    put_pending(con, id="late", available_at=DEADLINE, deadline=DEADLINE)
    send = Sender()

    assert start(send).run("drained") == Tally()

    assert send.sent == []
    assert [each["reason"] for each in all_jobs(con)] == ["exhausted", "deadline"]


def test_run_takes_over_when_a_lease_ends(
    con: sqlite3.Connection, start: Start, time: Time
) -> None:
    """A drain waits for the other worker's lease, then sends the job itself."""
    put_leased(con, lease_until=NOW + 700)

    assert start(Sender()).run("drained") == Tally(done=1)

    assert time.now_ms == NOW + 700
    assert job(con)["token"] == 5


def test_run_reports_a_lease_that_ended_during_the_send(
    con: sqlite3.Connection, start: Start, time: Time
) -> None:
    """A late confirmation changes nothing and is called stale."""
    put_pending(con)

    def slow() -> bool:
        time.now_ms += 500
        return True

    assert start(Sender(slow), lease_ms=500).run("once") == Tally(stale=1)
    assert job(con)["status"] == "leased"


def test_run_leases_for_its_own_time(con: sqlite3.Connection, start: Start) -> None:
    """The lease that is asked for is the one that is taken."""
    put_pending(con, deadline=DAY)

    start(Sender(None), lease_ms=1234).run("once")

    assert job(con)["lease_until"] == NOW + 1234


def test_run_once_sends_one_job(con: sqlite3.Connection, start: Start) -> None:
    """The second job is left for another run."""
    put_pending(con, id="job-1")
    put_pending(con, id="job-2")

    assert start(Sender()).run("once") == Tally(done=1)
    assert job(con, "job-2")["status"] == "pending"


@pytest.mark.parametrize("until", ["once", "drained"])
def test_run_of_a_queue_with_nothing_open_ends(
    con: sqlite3.Connection, queue_path: Path, start: Start, until: Any
) -> None:
    """Nothing is sent and not a byte is written."""
    put_dead(con)

    with unchanged(con, queue_path):
        assert start(Sender()).run(until) == Tally()


def test_run_once_does_not_wait(con: sqlite3.Connection, queue_path: Path, start: Start) -> None:
    """A job that is due a millisecond later is not waited for."""
    put_pending(con, available_at=NOW + 1)

    with unchanged(con, queue_path):
        assert start(Sender()).run("once") == Tally()


def test_run_while_idle_only_reads(con: sqlite3.Connection, queue_path: Path, start: Start) -> None:
    """An idle worker takes no write lock, tells how long it waits, and ends when it is stopped."""
    put_pending(con, available_at=NOW + 7)
    waits: list[int | None] = []

    def idle(due_in_ms: int | None) -> None:
        waits.append(due_in_ms)
        if len(waits) == 3:
            worker.stop()

    worker = start(Sender(), on_idle=idle)
    with writing(queue_path), unchanged(con, queue_path):
        assert worker.run() == Tally()

    assert waits == [7, 7, 7]


def test_run_on_an_empty_queue_waits_without_an_end_in_sight(
    con: sqlite3.Connection, start: Start
) -> None:
    """Without an open job nobody knows when the next one comes."""
    waits: list[int | None] = []

    def idle(due_in_ms: int | None) -> None:
        waits.append(due_in_ms)
        put_pending(con)

    stop = Stopper()
    stop.worker = worker = start(stop, on_idle=idle)

    assert worker.run() == Tally(done=1)
    assert waits == [None]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The milliseconds that a run waits for mail, each time there is none; it does not wait."""
    ms: list[float] = []

    class Impatient(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            if self.empty() and timeout:
                ms.append(round(timeout * 1000, 3))
            return self.get_nowait()

    monkeypatch.setattr(_dispatcher, "Mail", Impatient)
    return ms


def test_run_pauses_longer_each_time_it_finds_nothing(
    con: sqlite3.Connection, start: Start, waits: list[float]
) -> None:
    """Pauses double up to the longest, shrink to no less than half, and start over."""
    shares = iter([1, 0, 0.5, 1, 1, 1, 1, 1])

    def idle(_due_in_ms: int | None) -> None:
        if len(waits) == 5:
            put_pending(con)
        if len(waits) == 7:
            worker.stop()

    worker = start(Sender(), poll_ms=300, jitter=lambda: next(shares), on_idle=idle)

    worker.run()

    assert waits == [50, 50, 150, 300, 300, 300, 50]


def test_run_wakes_when_the_next_job_is_due(
    con: sqlite3.Connection, start: Start, waits: list[float]
) -> None:
    """No pause is longer than the wait for the job that is due next."""
    put_pending(con, available_at=NOW + 20)

    start(Sender(), poll_ms=300).run("drained")

    assert waits == [20]


def test_stop_before_a_run_ends_it_at_once(con: sqlite3.Connection, start: Start) -> None:
    """A signal that comes early is not lost."""
    put_pending(con)
    worker = start(Sender())
    worker.stop()

    assert worker.run() == Tally()
    assert job(con)["status"] == "pending"


def test_stop_during_a_send_records_the_job_in_hand(con: sqlite3.Connection, start: Start) -> None:
    """The job that is being sent is finished, and no other is begun."""
    put_pending(con, id="job-1")
    put_pending(con, id="job-2")
    stop = Stopper()
    stop.worker = worker = start(stop)

    assert worker.run() == Tally(done=1)
    assert job(con, "job-2")["status"] == "pending"


@pytest.mark.parametrize("how", ["thread", "signal"])
def test_stop_wakes_an_idle_run(start: Start, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """From another thread or a signal handler, a long pause ends at once."""
    stop = Stopper()
    before = signal.signal(signal.SIGUSR1, stop)

    def idle(_due_in_ms: int | None) -> None:
        wake = stop if how == "thread" else lambda: os.kill(os.getpid(), signal.SIGUSR1)
        timer = threading.Timer(0.02, wake)
        timer.daemon = True
        timer.start()

    monkeypatch.setattr(_run, "_FIRST_PAUSE_MS", DAY)
    stop.worker = worker = start(Sender(), poll_ms=DAY, on_idle=idle)
    try:
        assert worker.run() == Tally()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_run_can_be_repeated(con: sqlite3.Connection, start: Start) -> None:
    """Each run opens the file anew and counts for itself."""
    put_pending(con, id="job-1")
    worker = start(Sender())

    assert worker.run("drained") == Tally(done=1)
    put_pending(con, id="job-2")
    assert worker.run("drained") == Tally(done=1)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_run_is_ended_by_what_is_no_error_of_a_job(
    con: sqlite3.Connection, queue_path: Path, start: Start, error: BaseException
) -> None:
    """An interrupt comes out as it is; the job stays leased and the file is let go."""
    put_pending(con)

    with pytest.raises(type(error)) as caught:
        start(Sender(error)).run("drained")

    assert caught.value is error
    assert job(con)["status"] == "leased"


def test_run_of_a_missing_file_makes_none(tmp_path: Path) -> None:
    """A worker never creates a queue."""
    with pytest.raises(FileNotFoundError):
        Dispatcher(tmp_path / "none.db", Sender(), owner="worker-b").run("once")

    assert not (tmp_path / "none.db").exists()


def test_run_of_a_stranger_s_file_refuses(tmp_path: Path) -> None:
    """Another application's tables are left alone."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE jobs (name TEXT)")

    with pytest.raises(UnusableFile):
        Dispatcher(path, Sender(), owner="worker-b").run("once")


# A lock held by somebody else.


@pytest.mark.usefixtures("hasty")
def test_run_waits_for_a_locked_queue(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """A lock is told, waited for, and is no reason to end."""
    put_pending(con)
    trouble = locked_for(queue_path, 1)

    assert start(Sender(), on_trouble=trouble).run("drained") == Tally(done=1)


@pytest.mark.usefixtures("hasty")
def test_run_without_an_end_waits_for_ever(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """A lock that stays is told again now and then."""
    put_pending(con)
    trouble = locked_for(queue_path, 3)
    stop = Stopper()
    stop.worker = worker = start(stop, on_trouble=trouble)

    assert worker.run() == Tally(done=1)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("until", ["once", "drained"])
def test_run_with_an_end_gives_up_on_a_locked_queue(
    con: sqlite3.Connection, queue_path: Path, start: Start, until: Any
) -> None:
    """After the bounded number of tries the lock comes out as it is."""
    put_pending(con)
    reports: list[object] = []

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        start(Sender(), on_trouble=reports.append).run(until)

    assert len(reports) == 1


@pytest.mark.usefixtures("hasty")
def test_stop_ends_the_wait_for_a_lock(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """A worker that cannot get at its queue still ends when told to."""
    put_pending(con)
    stop = Stopper()
    stop.worker = worker = start(Sender(), on_trouble=stop)

    with writing(queue_path):
        assert worker.run() == Tally()


def test_stop_ends_the_wait_for_the_file_to_open(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """A file that is locked against readers as well is waited for so, and left without a trace."""
    stop = Stopper()
    stop.worker = worker = start(Sender(), on_trouble=stop)
    con.execute("BEGIN EXCLUSIVE")

    assert worker.run() == Tally()

    assert [name for name in descriptors(queue_path.parent) if "-gate" in name] == []
    con.execute("ROLLBACK")


@pytest.mark.usefixtures("hasty")
def test_run_records_a_send_through_a_lock(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """What was sent is recorded as soon as the lock is gone; it is not sent again."""
    put_pending(con)
    unlock: list[Callable[[object], None]] = []

    def send(_event: Event) -> bool:
        unlock.append(locked_for(queue_path, 1))
        return True

    def trouble(error: object) -> None:
        unlock.pop()(error)

    worker = start(send, on_trouble=trouble)

    assert worker.run("drained") == Tally(done=1)
    assert unlock == []


@pytest.mark.usefixtures("hasty")
def test_run_gives_up_recording_when_the_lease_has_ended(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """Past its lease a result is stale, lock or not."""
    put_pending(con)
    locks: list[Any] = []

    def send(_event: Event) -> bool:
        locks.append(writing(queue_path))
        locks[0].__enter__()
        return True

    def trouble(_error: object) -> None:
        time.now_ms = NOW + 400

    assert start(send, lease_ms=400, on_trouble=trouble).run("once") == Tally(stale=1)
    locks[0].__exit__(None, None, None)


def test_run_is_ended_by_a_failing_file(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """An error of SQLite that is no lock comes out, during a claim as during a finish."""
    put_pending(con)
    con.execute("CREATE TRIGGER full BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(sqlite3.IntegrityError, match="full"):
        start(Sender()).run("once")
    con.execute("DROP TRIGGER full")

    def send(_event: Event) -> bool:
        con.execute("ALTER TABLE jobs RENAME TO work")
        return True

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        start(send).run("once")


def test_run_gives_up_at_once_on_an_error_that_is_no_lock(
    con: sqlite3.Connection, start: Start
) -> None:
    """A table that is gone does not come back by waiting."""
    con.execute("ALTER TABLE jobs RENAME TO work")
    reports: list[object] = []

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        start(Sender(), on_trouble=reports.append).run()

    assert reports == []


def test_run_waits_for_a_reader_in_the_way_of_a_commit(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """A claim that a reader keeps from committing is tried again, not lost."""
    put_pending(con)
    readers = [reading(queue_path)]
    readers[0].__enter__()

    def trouble(_error: object) -> None:
        readers.pop().__exit__(None, None, None)

    assert start(Sender(), on_trouble=trouble).run("drained") == Tally(done=1)
    assert job(con)["token"] == 1


# A forked child.


def in_child(work: Callable[[], None]) -> int:
    """Fork, do the work in the child, and return 0 if it raised nothing."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001  (a child of a test must not go on as the test)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_run_refuses_to_go_on_in_a_forked_child(
    con: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender that forks and returns twice leaves the queue to the parent alone."""
    put_pending(con, id="job-1")
    put_pending(con, id="job-2")
    test_pid = os.getpid()
    children: list[int] = []

    def send(_event: Event) -> bool:
        if os.getpid() == test_pid and not children:
            children.append(os.fork())
        return True

    worker = start(send)
    try:
        tally = worker.run("drained")
    except RuntimeError as error:
        if os.getpid() == test_pid:
            raise
        ok = "forked child" in str(error) and len(_run._inherited) == 1
        os._exit(0 if ok else 1)
    if os.getpid() != test_pid:
        os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert tally == Tally(done=2)
    assert [each["attempts"] for each in all_jobs(con)] == [1, 1]


def test_run_notices_a_fork_without_a_send(
    con: sqlite3.Connection, queue_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between two looks at the queue, the inherited connection is neither used nor closed."""
    put_pending(con, available_at=DEADLINE)
    monkeypatch.setattr(_run, "_inherited", [])

    def idle(_due_in_ms: int | None) -> None:
        monkeypatch.setattr(os, "getpid", lambda: -1)

    with pytest.raises(RuntimeError, match="forked child"):
        start(Sender(), on_idle=idle).run()

    (inherited,) = _run._inherited
    inherited.close()


def test_a_dispatcher_made_before_a_fork_runs_in_the_child(
    con: sqlite3.Connection, start: Start
) -> None:
    """Until it runs, a dispatcher holds no connection."""
    worker = start(Sender())
    con.close()

    def work() -> None:
        assert worker.run("drained") == Tally()

    assert in_child(work) == 0


def test_dispatcher_uses_the_wall_clock_by_default(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Without a clock a job of 1970 is far too late."""
    put_pending(con)

    assert Dispatcher(queue_path, Sender(), owner="worker-b").run("drained") == Tally()
    assert job(con)["reason"] == "deadline"


def test_dispatcher_tells_nobody_by_default(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results, pauses and locks need no listener."""
    put_pending(con)
    worker = Dispatcher(queue_path, Sender(), owner="worker-b", clock=Time())
    tries: list[str] = []

    def next_due(con: sqlite3.Connection) -> int | None:
        tries.append("")
        if len(tries) == 1:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        if len(tries) == 4:
            worker.stop()
        return due(con)

    due = jobs.next_due
    monkeypatch.setattr(jobs, "next_due", next_due)

    assert worker.run() == Tally(done=1)


@pytest.mark.parametrize(
    ("argument", "value"),
    table(
        owner=IDENTIFIERS,
        lease_ms=integers(1, DAY),
        base_ms=integers(1, DAY),
        cap_ms=integers(1000, DAY),
        poll_ms=integers(1, DAY),
    ),
)
def test_dispatcher_refuses(tmp_path: Path, argument: str, value: object) -> None:
    """Unusable arguments are refused before any file is looked at."""
    options: dict[str, Any] = {"owner": "worker-b", argument: value}

    with pytest.raises(ValueError, match=f"^{argument} must be "):
        Dispatcher(tmp_path / "none.db", Sender(), **options)
