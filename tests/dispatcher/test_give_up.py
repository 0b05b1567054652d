"""A run that gives up on a receiver that refuses everything."""

import sqlite3
import threading
from typing import Any

import pytest

from lease import Permanent, Retryable
from lease.dispatcher import Refused, Result, Tally
from lease.limits import CEILING
from tests.support.dispatcher import Sender, Start, our_threads
from tests.support.processes import DEADLINE_S
from tests.support.queue import all_jobs, put_pending
from tests.support.refused import integers

DAY = 86_400_000


def put_many(con: sqlite3.Connection, count: int) -> None:
    """Put so many jobs that are due."""
    for number in range(1, count + 1):
        put_pending(con, id=f"job-{number}", deadline=DAY)


def states(con: sqlite3.Connection) -> list[str]:
    """Return the state of each job."""
    return [each["status"] for each in all_jobs(con)]


def refuse(_event: object) -> object:
    """Answer as a mistyped address does."""
    raise Permanent("answered 404")


@pytest.mark.parametrize("until", ["stopped", "drained"])
@pytest.mark.parametrize("concurrency", [1, 2, 3, 8])
def test_run_gives_up_after_so_many_refusals(
    con: sqlite3.Connection, start: Start, concurrency: int, until: Any
) -> None:
    """Exactly so many jobs are dead, however many are sent at a time; the others are untouched."""
    put_many(con, 20)
    results: list[Result] = []
    worker = start(
        refuse, concurrency=concurrency, give_up_after=5, poll_ms=10, on_result=results.append
    )

    with pytest.raises(Refused, match=r"\(5 so far\)"):
        worker.run(until)

    assert states(con) == ["dead"] * 5 + ["pending"] * 15
    assert {each["reason"] for each in all_jobs(con)[:5]} == {"permanent"}
    assert {each["attempts"] for each in all_jobs(con)[5:]} == {0}
    assert sorted(result.id for result in results) == [f"job-{number}" for number in range(1, 6)]
    assert {result.status for result in results} == {"dead"}
    assert our_threads() == []


@pytest.mark.parametrize("concurrency", [1, 4])
def test_run_goes_on_once_a_job_was_accepted(
    con: sqlite3.Connection, start: Start, concurrency: int
) -> None:
    """A receiver that accepts the fourth job may refuse all that come later."""
    put_many(con, 12)
    gate = threading.Barrier(concurrency)

    def send(event: Any) -> object:
        if int(event["id"][4:]) <= concurrency:
            gate.wait(DEADLINE_S)
        if event["id"] == f"job-{concurrency}":
            return True
        return refuse(event)

    worker = start(send, concurrency=concurrency, give_up_after=max(2, concurrency))

    assert worker.run("drained") == Tally(done=1, dead=11)


def test_run_never_gives_up_by_itself(con: sqlite3.Connection, start: Start) -> None:
    """Without a number it is the caller's to say what is too much."""
    put_many(con, 50)

    assert start(refuse).run("drained") == Tally(dead=50)


@pytest.mark.parametrize("answer", [Retryable("busy"), None, ZeroDivisionError("a bug")])
def test_run_counts_refusals_alone(con: sqlite3.Connection, start: Start, answer: object) -> None:
    """Answers that postpone a job, or say nothing clear, neither count nor make up for others."""
    put_many(con, 6)
    no = Permanent("no")
    send = Sender(no, answer, answer, no, no)

    with pytest.raises(Refused):
        start(send, give_up_after=3).run("drained")

    assert [each["id"] for each in send.sent] == [f"job-{number}" for number in range(1, 6)]
    assert states(con).count("dead") == 3


def test_run_puts_no_more_jobs_at_risk_than_it_may_lose(
    con: sqlite3.Connection, start: Start
) -> None:
    """Until one is accepted three are sent at a time; then as many as there are senders."""
    put_many(con, 30)
    lock, gate = threading.Lock(), threading.Barrier(6)
    under_way = 0
    seen: list[int] = []

    def send(event: Any) -> object:
        nonlocal under_way
        number = int(event["id"][4:])
        with lock:
            under_way += 1
            seen.append(under_way)
        if 7 <= number <= 12:
            gate.wait(DEADLINE_S)
        with lock:
            under_way -= 1
        if number <= 4:
            raise Retryable("busy")
        return True

    worker = start(send, concurrency=6, give_up_after=3, flush_ms=0, poll_ms=10)

    assert worker.run("drained").done == 26
    assert max(seen[:4]) <= 3
    assert max(seen) == 6


def test_run_counts_anew_each_time(con: sqlite3.Connection, start: Start) -> None:
    """A worker that is started again has its chance again, and loses so many more jobs."""
    put_many(con, 5)
    worker = start(refuse, give_up_after=2)

    for lost in (2, 4):
        with pytest.raises(Refused, match="2 so far"):
            worker.run("drained")
        assert states(con).count("dead") == lost


def test_run_once_gives_up_after_one(con: sqlite3.Connection, start: Start) -> None:
    """A single refusal is enough where that was asked for, and not otherwise."""
    put_many(con, 2)

    assert start(refuse, give_up_after=2).run("once") == Tally(dead=1)
    with pytest.raises(Refused):
        start(refuse, give_up_after=1).run("once")


@pytest.mark.parametrize("value", [case for case in integers(1, CEILING) if case.id != "none"])
def test_dispatcher_refuses_another_number(start: Start, value: object) -> None:
    """It is an exact int from 1, or None."""
    with pytest.raises(ValueError, match=r"^give_up_after must be"):
        start(refuse, give_up_after=value)
