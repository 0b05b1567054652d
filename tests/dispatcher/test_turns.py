"""Turns: one thread at a time, gates only for who writes, and none where none can be."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import UnusableFile, jobs
from lease.db.turnstile import Turnstile
from lease.dispatcher import Dispatcher, Tally
from lease.dispatcher._turns import Turns
from tests.support.dispatcher import Sender, Start
from tests.support.queue import DEADLINE, put_pending, without_waiting, writing


def gates(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.glob("*-gate*"))


def test_take_lets_one_thread_at_a_time(queue_path: Path, con: sqlite3.Connection) -> None:
    """The second thread begins when the first has ended, and gets its own result."""
    inside: list[str] = []
    results: list[int] = []

    def work() -> int:
        inside.append("in")
        inside.append("out")
        return len(inside)

    with closing(Turns(queue_path, lambda _error: None)) as turns:
        other = threading.Thread(target=lambda: results.append(turns.take(work)))

        def first() -> int:
            other.start()
            # Not a wait for something: the other thread must not come in meanwhile.
            other.join(0.05)
            assert inside == []
            return work()

        assert turns.take(first) == 2
        other.join()

    assert results == [4]


def test_take_gives_the_turn_back_on_an_error(queue_path: Path, con: sqlite3.Connection) -> None:
    """What fails in a turn comes out, and the next turn is free."""
    with closing(Turns(queue_path, lambda _error: None)) as turns:
        with pytest.raises(ZeroDivisionError):
            turns.take(lambda: 1 / 0)
        assert turns.take(lambda: 1) == 1


def test_take_goes_on_without_gates_that_cannot_be_made(tmp_path: Path) -> None:
    """It is told once, and everything is done all the same."""
    told: list[OSError] = []
    turns = Turns(tmp_path / "missing.db", told.append)

    assert [turns.take(lambda: 1), turns.take(lambda: 2)] == [1, 2]
    assert [type(each) for each in told] == [FileNotFoundError]
    turns.close()


def test_take_goes_on_without_gates_that_cannot_be_locked(
    queue_path: Path, con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that knows no such locks is no reason to stop."""
    told: list[OSError] = []

    def refuse(_turnstile: Turnstile) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(Turnstile, "__enter__", refuse)
    with closing(Turns(queue_path, told.append)) as turns:
        assert [turns.take(lambda: 1), turns.take(lambda: 2)] == [1, 2]

    assert len(told) == 1


def test_run_leaves_its_gates_beside_the_queue(
    con: sqlite3.Connection, queue_path: Path, start: Start
) -> None:
    """Whoever comes next takes turns at the same ones; no descriptor of them is left."""
    put_pending(con)
    before = os.listdir("/proc/self/fd")

    start(Sender()).run("drained")

    assert gates(queue_path) == ["queue.db-gate1", "queue.db-gate2"]
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_run_on_a_stranger_s_file_leaves_no_gates(tmp_path: Path) -> None:
    """A wrong path costs nobody anything."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE jobs (name TEXT)")

    with pytest.raises(UnusableFile):
        Dispatcher(path, Sender(), owner="worker-b").run("once")

    assert gates(path) == []


def test_connect_waits_for_a_turn_where_readers_find_no_gap(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is locked is opened when those who write have made room."""
    opened = jobs.open_queue
    tries: list[bool] = []

    def open_queue(path: Path, **options: Any) -> sqlite3.Connection:
        tries.append(turns._pen.locked())
        if len(tries) == 1:
            with writing(path):
                without_waiting(con)
                con.execute("BEGIN IMMEDIATE")
        return opened(path, **options)

    monkeypatch.setattr(jobs, "open_queue", open_queue)
    with closing(Turns(queue_path, lambda _error: None)) as turns:
        turns.connect().close()

    assert tries == [False, True]


def test_connect_waits_for_nothing_else(queue_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that fails is not tried again."""
    error = sqlite3.OperationalError("disk I/O error")
    tries: list[Path] = []

    def open_queue(path: Path, **options: Any) -> None:
        tries.append(path)
        raise error

    monkeypatch.setattr(jobs, "open_queue", open_queue)
    with (
        closing(Turns(queue_path, lambda _error: None)) as turns,
        pytest.raises(sqlite3.OperationalError) as caught,
    ):
        turns.connect()

    assert (caught.value, tries) == (error, [queue_path])


@pytest.mark.parametrize("concurrency", [1, 4])
def test_run_tells_once_that_it_takes_no_turns(
    con: sqlite3.Connection, queue_path: Path, start: Start, concurrency: int
) -> None:
    """It delivers as ever."""
    put_pending(con, id="job-1", deadline=DEADLINE)
    put_pending(con, id="job-2", deadline=DEADLINE)
    (queue_path.parent / "queue.db-gate2").mkdir()
    told: list[Exception] = []
    worker = start(Sender(), concurrency=concurrency, on_trouble=told.append)

    assert worker.run("drained") == Tally(done=2)
    assert [type(each) for each in told] == [IsADirectoryError]
