"""Renewals: which leases are made longer and when, whatever else is held up."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import Event, jobs
from lease.dispatcher import Result, Tally
from lease.dispatcher._hand import Hand
from lease.dispatcher._mail import Mail, Trouble
from lease.dispatcher._renewals import Renewals
from lease.dispatcher._turns import Turns
from tests.support.cli import until
from tests.support.dispatcher import Sends, Signal, Start, Time, our_threads
from tests.support.queue import (
    NOW,
    descriptors,
    job,
    put_pending,
    reading,
    unchanged,
    without_waiting,
    writing,
)

DAY = 86_400_000

#: Short, so that a run looks after its leases every few milliseconds.
LEASE = 80


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """The renewals end with their run."""
    yield
    assert our_threads() == []


class Keeper:
    """Renewals that the test calls, and the job whose lease they look after."""

    def __init__(self, con: sqlite3.Connection, renewals: Renewals, mail: Mail) -> None:
        self.con = con
        self.renewals = renewals
        self.mail = mail
        self.calls = 0

    def claim(self, now_ms: int, **columns: Any) -> Hand:
        """Take a new job in hand."""
        put_pending(self.con, deadline=DAY, **columns)
        ticket = jobs.claim(self.con, "worker-b", now_ms, 900)
        assert ticket is not None
        return self.renewals.keep(ticket, now_ms)

    def connect(self) -> sqlite3.Connection:
        """Give the connection, and count."""
        self.calls += 1
        return self.con


@pytest.fixture
def keeper(con: sqlite3.Connection, start: Start, queue_path: Path) -> Iterator[Keeper]:
    """Renewals of 900 ms by a clock that stands still at NOW."""
    mail = Mail()
    with closing(Turns(queue_path, lambda error: mail.put(Trouble(error)))) as turns:
        options = start(Sends(), lease_ms=900)._options
        yield Keeper(con, Renewals(options, turns, mail), mail)


@pytest.mark.parametrize(("ago", "renewed"), [(449, False), (450, False), (451, True)])
def test_renew_due_begins_past_half_of_the_lease(keeper: Keeper, ago: int, renewed: bool) -> None:
    """Before that nothing is written, and no connection is asked for."""
    hand = keeper.claim(NOW - ago, available_at=0)

    keeper.renewals.renew_due(keeper.connect)

    lease_until = NOW + 900 if renewed else NOW - ago + 900
    assert job(keeper.con)["lease_until"] == hand.ticket["lease_until"] == lease_until
    assert keeper.calls == int(renewed)


def test_renew_due_leaves_a_lease_that_ends_with_the_job(
    con: sqlite3.Connection, queue_path: Path, keeper: Keeper
) -> None:
    """Where the deadline has clipped it there is nothing to gain, hence nothing to write."""
    put_pending(con, available_at=0, deadline=NOW + 10)
    ticket = jobs.claim(con, "worker-b", NOW - 800, 900)
    assert ticket is not None
    hand = keeper.renewals.keep(ticket, NOW - 800)

    with unchanged(con, queue_path):
        keeper.renewals.renew_due(keeper.connect)

    assert (hand.ticket, keeper.calls) == (ticket, 0)


def test_renew_due_goes_up_to_the_deadline_once(
    con: sqlite3.Connection, keeper: Keeper, time: Time
) -> None:
    """The last renewal ends with the job, and is not tried again."""
    put_pending(con, available_at=0, deadline=NOW + 500)
    ticket = jobs.claim(con, "worker-b", NOW - 800, 900)
    assert ticket is not None
    hand = keeper.renewals.keep(ticket, NOW - 800)

    keeper.renewals.renew_due(keeper.connect)
    time.now_ms = NOW + 499
    keeper.renewals.renew_due(keeper.connect)

    assert hand.ticket["lease_until"] == job(con)["lease_until"] == NOW + 500
    assert keeper.calls == 1


def test_renew_due_notes_a_lost_lease_once(keeper: Keeper, con: sqlite3.Connection) -> None:
    """A job that somebody else has taken over is left to them."""
    hand = keeper.claim(NOW - 800, available_at=0)
    con.execute("UPDATE jobs SET token = token + 1, owner = 'other'")

    keeper.renewals.renew_due(keeper.connect)
    keeper.renewals.renew_due(keeper.connect)

    assert (hand.is_lost, keeper.calls) == (True, 1)
    assert job(con)["lease_until"] == NOW + 100


def test_renew_due_lets_go_of_what_cannot_be_recorded(keeper: Keeper) -> None:
    """A lease that has to run out before the job is tried again is not made longer."""
    keeper.claim(NOW - 800, available_at=0).is_let_go = True

    keeper.renewals.renew_due(keeper.connect)

    assert keeper.calls == 0


def test_renew_due_passes_over_what_is_recorded_meanwhile(
    con: sqlite3.Connection, queue_path: Path, keeper: Keeper
) -> None:
    """A job whose record came first in turn needs nothing any more."""
    hand = keeper.claim(NOW - 800, available_at=0)

    def connect() -> sqlite3.Connection:
        keeper.renewals.drop(hand)
        return con

    with unchanged(con, queue_path):
        keeper.renewals.renew_due(connect)

    assert not hand.is_lost


def test_look_tells_a_lock_when_it_begins(
    keeper: Keeper, queue_path: Path, con: sqlite3.Connection
) -> None:
    """A lock that stays is told once, the next one again; the lease is renewed in between."""
    keeper.claim(NOW - 800, available_at=0)
    without_waiting(con)
    told = []
    for lock in (writing, writing, reading):
        with lock(queue_path):
            keeper.renewals._look(keeper.connect)
            told.append(keeper.mail.qsize())
    assert told == [1, 1, 1]

    keeper.renewals._look(keeper.connect)
    assert job(con)["lease_until"] == NOW + 900

    keeper.claim(NOW - 700, id="job-2", available_at=0)
    with writing(queue_path):
        keeper.renewals._look(keeper.connect)
    messages = [keeper.mail.get_nowait(), keeper.mail.get_nowait()]
    assert [str(each.error) for each in messages] == ["database is locked"] * 2  # type: ignore[union-attr]


# In a run.


def lease_end(path: Path, job_id: str) -> int:
    """Read the end of a lease, in any thread."""
    with closing(sqlite3.connect(path)) as other:
        return int(job(other, job_id)["lease_until"])


def renewed(path: Path, job_id: str, lease_until: int) -> bool:
    """Wait until the lease of a job has been made longer, and confirm."""
    until(lambda: lease_end(path, job_id) == lease_until)
    return True


def test_run_renews_the_lease_of_a_slow_send(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """A send may take many times its lease, and the result is recorded all the same."""
    put_pending(con, deadline=DAY)

    def send() -> bool:
        for _ in range(3):
            time.now_ms += LEASE // 2 + 1
            renewed(queue_path, "job-1", time.now_ms + LEASE)
        return True

    worker = start(Sends(**{"job-1": send}), lease_ms=LEASE)

    assert worker.run("drained") == Tally(done=1)
    assert descriptors(queue_path.parent).count(str(queue_path)) == 1


def test_run_renews_while_every_sender_is_blocked(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """A receiver that answers nobody costs no lease."""
    for number in range(1, 4):
        put_pending(con, id=f"job-{number}", deadline=DAY)
    blocked = threading.Barrier(3, action=lambda: setattr(time, "now_ms", NOW + LEASE // 2 + 1))

    def send(event: Event) -> bool:
        blocked.wait()
        return renewed(queue_path, event["id"], time.now_ms + LEASE)

    assert start(send, concurrency=3, lease_ms=LEASE).run("drained") == Tally(done=3)


def test_run_renews_while_a_callback_is_blocked(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """The thread that runs may be held up by whoever is told; the sends do not pay for it."""
    put_pending(con, id="job-1", deadline=DAY)
    put_pending(con, id="job-2", deadline=DAY)
    told = Signal()

    def tell(result: Result) -> None:
        if result.id == "job-1":
            time.now_ms += LEASE // 2 + 1
            renewed(queue_path, "job-2", time.now_ms + LEASE)
            told.set()

    worker = start(
        Sends(**{"job-2": told}), concurrency=2, lease_ms=LEASE, flush_ms=0, on_result=tell
    )

    assert worker.run("drained") == Tally(done=2)


def test_run_tells_what_could_not_be_renewed_as_stale(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """A job that was taken over is not this worker's any more, however its send ended."""
    put_pending(con, id="job-1", deadline=DAY)
    put_pending(con, id="job-2", deadline=DAY)
    looked = Signal()
    both = threading.Barrier(2)
    renew = jobs.renew

    def take_over(confirms: object) -> Callable[[], object]:
        def send() -> object:
            if both.wait() == 0:
                with closing(sqlite3.connect(queue_path, isolation_level=None)) as other:
                    other.execute(
                        "UPDATE jobs SET token = token + 1, owner = 'other', lease_until = ?",
                        (DAY - 1,),
                    )
                time.now_ms += LEASE // 2 + 1
            looked()
            worker.stop()
            return confirms

        return send

    lost: list[None] = []

    def watch(*args: Any, **options: Any) -> Any:
        ticket = renew(*args, **options)
        lost.append(ticket)
        if len(lost) == 2:
            looked.set()
        return ticket

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "renew", watch)
        worker = start(
            Sends(**{"job-1": take_over(True), "job-2": take_over(None)}),
            concurrency=2,
            lease_ms=LEASE,
        )
        assert worker.run() == Tally(stale=2)

    assert lost == [None, None]
    assert [each["owner"] for each in (job(con, "job-1"), job(con, "job-2"))] == ["other"] * 2


@pytest.mark.parametrize("concurrency", [1, 2])
def test_run_is_ended_by_a_renewal_that_fails(
    con: sqlite3.Connection,
    start: Start,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
    concurrency: int,
) -> None:
    """An error that does not pass comes out as it is, once the send in hand is recorded."""
    put_pending(con, deadline=DAY)
    failed = Signal()
    error = sqlite3.OperationalError("disk I/O error")

    def renew(*_: object, **__: object) -> None:
        failed.set()
        raise error

    def send() -> bool:
        time.now_ms += LEASE // 2 + 1
        failed()
        until(lambda: "lease-renewals" not in our_threads())
        return True

    monkeypatch.setattr(jobs, "renew", renew)

    with pytest.raises(sqlite3.OperationalError) as caught:
        start(Sends(**{"job-1": send}), concurrency=concurrency, lease_ms=LEASE).run("drained")

    assert caught.value is error
    assert job(con)["status"] == "done"


def test_run_tells_the_trouble_of_a_renewal(
    con: sqlite3.Connection, queue_path: Path, start: Start, time: Time
) -> None:
    """It is told by the thread that runs, and the renewal succeeds when the lock has gone."""
    put_pending(con, deadline=DAY)
    told = Signal()
    threads: list[int] = []
    original = jobs.open_queue

    def hasty(path: Path, **options: Any) -> sqlite3.Connection:
        opened = original(path, **options)
        without_waiting(opened)
        return opened

    def trouble(_error: Exception) -> None:
        threads.append(threading.get_ident())
        told.set()

    def send() -> bool:
        with writing(queue_path):
            time.now_ms += LEASE // 2 + 1
            told()
        return renewed(queue_path, "job-1", time.now_ms + LEASE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "open_queue", hasty)
        worker = start(Sends(**{"job-1": send}), concurrency=2, lease_ms=LEASE, on_trouble=trouble)
        assert worker.run("drained") == Tally(done=1)

    assert set(threads) == {threading.get_ident()}
