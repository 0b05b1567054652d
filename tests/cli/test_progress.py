"""What a worker tells while it runs: failures on lines, counts on a terminal."""

import io
import sqlite3
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from lease import BadAck, Permanent, Retryable
from lease.cli import _progress
from lease.cli._progress import Progress
from lease.dispatcher import Result


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class Time:
    """A clock in seconds that the test moves."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def time() -> Iterator[Time]:
    """The clock that a progress goes by."""
    clock = Time()
    with patch.object(_progress, "time", clock):
        yield clock


def result(status: str, error: Exception | None = None) -> Result:
    return Result("job-1", 1, 2, status, 1500, error)


def told(*results: Result) -> str:
    stream = io.StringIO()
    with Progress(stream) as progress:
        for each in results:
            progress.tell_result(each)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (
            result("pending", Retryable("no answer")),
            "job-1: attempt 2 failed, no answer; again in 1s\n",
        ),
        (
            result("dead", Permanent("404")),
            "job-1: attempt 2 failed, 404; dead, until it is redriven\n",
        ),
        (
            result("leased", BadAck("what?")),
            "job-1: attempt 2 failed, what?; again when its lease ends\n",
        ),
        (result("stale"), "job-1: attempt 2 ended after its lease; not recorded\n"),
        (result("done"), ""),
    ],
)
def test_tell_result_tells_what_did_not_succeed(outcome: Result, line: str) -> None:
    """Without a terminal a success is silent and a failure is one line."""
    assert told(outcome) == line


def test_tell_result_tells_alike_failures_once(time: Time) -> None:
    """A receiver that is down does not flood the log; how often it failed is told later."""
    stream = io.StringIO()
    down = result("pending", Retryable("down"))
    with Progress(stream) as progress:
        for _ in range(3):
            progress.tell_result(down)
        time.now_s += 9.9
        progress.tell_result(down)
        time.now_s += 0.1
        progress.tell_result(down._replace(id="job-9"))
        progress.tell_result(result("pending", Retryable("up")))

    assert stream.getvalue().splitlines() == [
        "job-1: attempt 2 failed, down; again in 1s",
        "job-9: attempt 2 failed, down; again in 1s (3 more failed like the one before)",
        "job-1: attempt 2 failed, up; again in 1s",
    ]


def test_tell_result_tells_every_death() -> None:
    """A dead job needs somebody, however many have died alike."""
    dead = result("dead", Permanent("404"))

    assert told(dead, dead).count("dead, until it is redriven") == 2


def test_a_terminal_shows_the_counts_below_the_failures(time: Time) -> None:
    """The line is redrawn in place, made way for a failure, and cleared in the end."""
    stream = Terminal()
    with Progress(stream) as progress:
        time.now_s += 2
        progress.tell_result(result("done"))
        time.now_s += 0.05
        progress.tell_result(result("done"))
        time.now_s += 1.95
        progress.tell_result(result("done"))
        progress.tell_result(result("pending", Retryable("down")))
        progress.tell_idle(7000)
        progress.tell_idle(None)

    clear, bold, plain = "\r\x1b[K", "\x1b[1m", "\x1b[0m"
    assert stream.getvalue() == (
        f"{clear}{bold}1 done{plain}  0 a second"
        f"{clear}{bold}3 done{plain}  1 a second"
        f"{clear}job-1: attempt 2 failed, down; again in 1s\n"
        f"{clear}{bold}3 done, 1 failed{plain}  1 a second"
        f"{clear}{bold}3 done, 1 failed{plain}  next job in 7s"
        f"{clear}{bold}3 done, 1 failed{plain}  idle"
        f"{clear}"
    )


def test_without_a_terminal_idling_is_silent() -> None:
    """A log does not grow while nothing happens."""
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.tell_idle(None)

    assert stream.getvalue() == ""


def test_tell_trouble_and_step_back_are_told() -> None:
    """What holds up the worker as a whole is told wherever it runs."""
    stream = io.StringIO()
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    with Progress(stream) as progress:
        progress.tell_trouble(sqlite3.OperationalError("database is locked"))
        progress.tell_trouble(full)
        progress.tell_trouble(PermissionError(13, "Permission denied", "q.db-gate1"))
        progress.tell_step_back(3_600_000)

    assert stream.getvalue() == (
        "the queue is locked by another process (database is locked); waiting for it\n"
        "the queue cannot grow (database or disk is full); waiting for room\n"
        "the workers of this queue cannot take turns (Permission denied); going on without\n"
        "the system's clock went back by 1h; time stands still here until it has caught up, "
        "or restart this worker to go by the new time\n"
    )
