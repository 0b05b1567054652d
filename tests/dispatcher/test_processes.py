"""Workers in processes of their own: side by side, killed, and stopped for a while."""

import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lease import jobs
from lease.clock import wall_ms
from tests.support.http import rows
from tests.support.processes import Child
from tests.support.queue import all_jobs

DAY = 86_400_000

Spawn = Callable[..., Child]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start a function of the child module; whatever still runs is killed at the end."""
    with ExitStack() as stack:

        def start(function: str, *arguments: object) -> Child:
            child = Child(function, *arguments, module="tests.dispatcher.worker_child")
            stack.callback(child.close)
            return child

        yield start


def fill(con: sqlite3.Connection, count: int) -> None:
    events = [{"id": f"job-{number}", "qty": 1 + number % 9} for number in range(count)]
    jobs.enqueue_many(con, events, wall_ms(), DAY, 16)


@pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")
@pytest.mark.parametrize(("concurrency", "mode"), [(1, "delete"), (4, "delete"), (4, "wal")])
def test_workers_share_a_queue(
    con: sqlite3.Connection, queue_path: Path, spawn: Spawn, concurrency: int, mode: Any
) -> None:
    """Four of them drain it: each job once, nobody sees a lock, and each gets its part."""
    jobs.open_queue(queue_path, journal_mode=mode).close()
    fill(con, 400)
    workers = [spawn("drain", str(queue_path), f"w{n}", concurrency) for n in range(4)]
    assert [worker.hear() for worker in workers] == ["ready"] * 4
    for worker in workers:
        worker.tell("go")

    said = [worker.hear() for worker in workers]

    assert [worker.ended() for worker in workers] == [0] * 4
    assert Counter(each for told in said for each in told["sent"]) == Counter(
        f"job-{number}" for number in range(400)
    )
    assert sum(told["tally"]["done"] for told in said) == 400
    assert [told["troubles"] for told in said] == [[]] * 4
    assert min(len(told["sent"]) for told in said) > 0
    assert {(each["status"], each["attempts"]) for each in all_jobs(con)} == {("done", 1)}
    assert con.execute("PRAGMA journal_mode").fetchone() == (mode,)


def test_jobs_of_a_killed_worker_are_recovered(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path, spawn: Spawn
) -> None:
    """Eight sends are in flight when it dies; another worker sends them again: one effect each."""
    inbox = str(tmp_path / "inbox.db")
    fill(con, 20)
    first = spawn("apply", str(queue_path), inbox, "first", 8, 1000, True)
    in_flight = {first.hear() for _ in range(8)}
    os.kill(first.process.pid, signal.SIGKILL)
    assert first.ended() == -signal.SIGKILL

    second = spawn("apply", str(queue_path), inbox, "second", 8, 1000, False)
    sent = [second.hear() for _ in range(20)]

    assert second.hear() == {"done": 20, "pending": 0, "dead": 0, "leased": 0, "stale": 0}
    assert second.ended() == 0
    assert set(sent) == {f"job-{number}" for number in range(20)}
    listed, effects = rows(Path(inbox))
    assert {each[0] for each in effects} == set(sent)
    assert len(effects) == 20
    assert {job_id for job_id, _qty, requests in listed if requests == 2} == in_flight
    assert {each["attempts"] for each in all_jobs(con) if each["id"] in in_flight} == {2}
    assert {each["status"] for each in all_jobs(con)} == {"done"}


def test_a_worker_that_was_stopped_for_a_while_records_nothing_late(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path, spawn: Spawn
) -> None:
    """Its leases end meanwhile and another takes over; awake again it finds its results stale."""
    inbox = str(tmp_path / "inbox.db")
    fill(con, 3)
    asleep = spawn("apply", str(queue_path), inbox, "asleep", 3, 1000, True)
    assert {asleep.hear() for _ in range(3)} == {"job-0", "job-1", "job-2"}
    os.kill(asleep.process.pid, signal.SIGSTOP)

    awake = spawn("apply", str(queue_path), inbox, "awake", 3, 60_000, False)
    assert {awake.hear() for _ in range(3)} == {"job-0", "job-1", "job-2"}
    assert awake.hear()["done"] == 3
    assert awake.ended() == 0
    before = all_jobs(con)

    os.kill(asleep.process.pid, signal.SIGCONT)
    asleep.tell("release")
    assert asleep.hear() == {"done": 0, "pending": 0, "dead": 0, "leased": 0, "stale": 3}
    assert asleep.ended() == 0

    assert all_jobs(con) == before
    assert {each["token"] for each in before} == {2}
    _, effects = rows(Path(inbox))
    assert len(effects) == 3
