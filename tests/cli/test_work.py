"""`lease work`: real deliveries over HTTP, how a run ends, and what it says."""

import os
import pty
import re
import signal
import socket
import sqlite3
import sys
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from lease import jobs
from lease.clock import wall_ms
from lease.outbox import open_outbox
from tests.support.cli import ended, lease, receiving, started, until
from tests.support.http import answer, answering, request_of, rows, server
from tests.support.queue import all_jobs, job, writing

ACCEPTED = answering(answer("200 OK", b'{"accepted": true}'))
#: Nobody listens there.
NOWHERE = "http://127.0.0.1:9/"


def fill(con: sqlite3.Connection, *ids: str, attempts: int = 16) -> None:
    for number, job_id in enumerate(ids, 1):
        jobs.enqueue(con, {"id": job_id, "qty": number}, wall_ms(), 86_400_000, attempts)


def test_work_drains_a_queue_into_a_receiver(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """Every job is done, with one effect each, and the counts are told."""
    fill(con, "a", "b", "c")
    inbox = tmp_path / "inbox.db"

    with receiving(inbox) as url:
        assert lease("work", queue_path, "--to", url, "--drain") == (0, "3 done\n", "")

    assert [each["status"] for each in all_jobs(con)] == ["done"] * 3
    assert sorted(rows(inbox)[1]) == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")
def test_work_leaves_an_outbox_to_its_own_command(queue_path: Path) -> None:
    """A record's job without its payload would count as its delivery."""
    with closing(open_outbox(queue_path)) as con:
        jobs.create_queue(con)
        fill(con, "a")

        code, out, err = lease("work", queue_path, "--to", NOWHERE, "--drain")

        assert (code, out) == (1, "")
        assert "go out with: lease outbox deliver " in err
        assert err.count("\n") == 1
        assert job(con, "a")["status"] == "pending"


def test_work_once_delivers_one_job(con: sqlite3.Connection, queue_path: Path) -> None:
    """The owner is the one that was named."""
    fill(con, "a", "b")
    owners: list[str] = []

    def note(sock: socket.socket) -> None:
        request_of(sock)
        owners.append(job(other, "a")["owner"])
        sock.sendall(answer("200 OK", b'{"accepted": true}'))

    other = sqlite3.connect(queue_path, check_same_thread=False)
    with server(note) as url:
        ran = lease("work", queue_path, "--to", url, "--once", "--owner", "me", "--json")
    other.close()

    assert (ran.code, ran.json) == (
        0,
        {"done": 1, "pending": 0, "dead": 0, "leased": 0, "stale": 0},
    )
    assert owners == ["me"]
    assert job(con, "b")["status"] == "pending"


@pytest.mark.parametrize("how", ["--once", "--drain"])
def test_work_on_an_empty_queue_has_nothing_to_do(
    con: sqlite3.Connection, queue_path: Path, how: str
) -> None:
    """That is no failure."""
    assert lease("work", queue_path, "--to", NOWHERE, how) == (0, "nothing was due\n", "")


@pytest.mark.parametrize(
    ("body", "status", "line"),
    [
        (answer("503 Busy", b""), "pending", "answered 503; again in "),
        (answer("404 Gone", b""), "dead", "answered 404; dead, until it is redriven\n"),
        (answer("200 OK", b"{}"), "leased", "not True; again when its lease ends\n"),
    ],
)
def test_work_once_fails_with_its_job(
    con: sqlite3.Connection, queue_path: Path, body: bytes, status: str, line: str
) -> None:
    """A job that is not done is told on stderr, counted on stdout, and is exit code 1."""
    fill(con, "a")

    with server(answering(body)) as url:
        code, out, err = lease("work", queue_path, "--to", url, "--once")

    words = {"pending": "to be tried again", "dead": "dead", "leased": "without a clear answer"}
    assert (code, out) == (1, f"1 {words[status]}\n")
    assert err.startswith("a: attempt 1 failed, ")
    assert line in err
    assert job(con, "a")["status"] == status


def test_work_tells_a_command_that_can_be_typed(tmp_path: Path) -> None:
    """A path with a space is one word of it."""
    path = tmp_path / "my queue.db"
    with closing(jobs.open_queue(path)) as con:
        fill(con, "a")
    with receiving(tmp_path / "inbox.db") as url:
        err = lease("work", path, "--to", f"{url}typo", "--give-up-after", "1").err

    assert err.endswith(f": lease redrive '{path}' --reason permanent --note WHY\n")


def test_work_gives_up_on_a_receiver_that_refuses_everything(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """A wrong path buries so many jobs; the last line says why, and how to release them."""
    ids = [f"job-{number}" for number in range(110)]
    fill(con, *ids)
    with receiving(tmp_path / "inbox.db") as url:
        code, out, err = lease("work", queue_path, "--to", f"{url}typo")
        *failures, last = err.splitlines()

        assert (code, out) == (1, "")
        assert len(failures) == 100
        assert all(line.endswith("dead, until it is redriven") for line in failures)
        command = f"lease redrive {queue_path} --reason permanent --note WHY"
        assert last == (
            "lease: the receiver refuses every job for good (100 so far); check --to, then release "
            f"them with: {command}"
        )
        assert [each["status"] for each in all_jobs(con)] == ["dead"] * 100 + ["pending"] * 10

        assert lease(*command.replace("WHY", "typo").split()[1:]).out == "100 pending again\n"
        assert lease("work", queue_path, "--to", url, "--drain") == (0, "110 done\n", "")


@pytest.mark.parametrize(
    ("more", "dead"),
    [
        (("--give-up-after", "3"), 3),
        (("--give-up-after", "3", "--concurrency", "1"), 3),
        (("--give-up-after", "3", "--json"), 3),
        (("--give-up-after", "0"), 25),
        (("--give-up-after", "26"), 25),
    ],
)
def test_work_gives_up_when_it_is_told_to(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path, more: tuple[str, ...], dead: int
) -> None:
    """After another number, or never."""
    fill(con, *(f"job-{number}" for number in range(25)))
    with receiving(tmp_path / "inbox.db") as url:
        ran = lease("work", queue_path, "--to", f"{url}typo", "--drain", *more)

    assert ran.code == 1
    assert ran.out == ("25 dead\n" if dead == 25 else "")
    assert ran.err.endswith("--note WHY\n") is (dead == 3)
    assert [each["status"] for each in all_jobs(con)].count("dead") == dead


def test_work_drain_goes_on_after_a_bad_job(con: sqlite3.Connection, queue_path: Path) -> None:
    """A job that dies is exit code 1, and the others are delivered."""
    fill(con, "a", "b")

    with server(answering(answer("404 Gone", b"")), ACCEPTED) as url:
        code, out, _ = lease("work", queue_path, "--to", url, "--drain")

    assert (code, out) == (1, "1 done, 1 dead\n")


def test_work_drain_fails_with_a_job_that_died_untried(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A job whose time has passed dies without a send, and is exit code 1 all the same."""
    jobs.enqueue(con, {"id": "a", "qty": 1}, 1, 1)

    assert lease("work", queue_path, "--to", NOWHERE, "--drain") == (1, "nothing was due\n", "")
    assert job(con, "a")["reason"] == "deadline"


def test_work_drain_retries_until_it_succeeds(con: sqlite3.Connection, queue_path: Path) -> None:
    """A receiver that was down for a moment costs a retry and is no failure of the run."""
    fill(con, "a")

    with server(answering(answer("503 Busy", b"")), ACCEPTED) as url:
        code, out, err = lease(
            "work", queue_path, "--to", url, "--drain", "--backoff", "1ms", "--backoff-cap", "2ms"
        )

    assert (code, out) == (0, "1 done, 1 to be tried again\n")
    assert re.fullmatch(r"a: attempt 1 failed, .* answered 503; again in \dms\n", err)


def test_work_keeps_a_password_to_itself(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is secret in the URL appears in no line."""
    fill(con, "a")
    monkeypatch.setenv("LEASE_TO", "http://me:s3cret@127.0.0.1:9/")

    ran = lease("work", queue_path, "--once")

    assert ran.code == 1
    assert "127.0.0.1" in ran.err
    assert "s3cret" not in ran.err + ran.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "Missing option '--to'"),
        (("--to", "ftp://x"), "--to: url must be a str like https://host:port/path"),
        (("--to", NOWHERE, "--once", "--drain"), "--once and --drain exclude each other"),
        (("--to", NOWHERE, "--timeout", "30s"), "--timeout 30s does not fit into --lease 30s"),
        (("--to", NOWHERE, "--lease", "10s"), "--timeout 10s does not fit into --lease 10s"),
        (("--to", NOWHERE, "--backoff", "2s", "--backoff-cap", "1s"), "--backoff-cap is shorter"),
        (("--to", NOWHERE, "--lease", "25h"), "Invalid value for '--lease': 25h is not from"),
        (("--to", NOWHERE, "--poll", "5"), "Invalid value for '--poll': '5' is no duration"),
        (("--to", NOWHERE, "--concurrency", "0"), "Invalid value for '--concurrency': '0' is no"),
        (("--to", NOWHERE, "--concurrency", "1001"), "Invalid value for '--concurrency': '1001'"),
        (
            ("--to", NOWHERE, "--give-up-after", "-1"),
            "Invalid value for '--give-up-after': '-1' is",
        ),
        (("--to", NOWHERE, "--owner", "a b"), "Invalid value for '--owner': it must be a str"),
    ],
)
def test_work_refuses(
    con: sqlite3.Connection, queue_path: Path, arguments: tuple[str, ...], line: str
) -> None:
    """Unusable arguments are told before anything is sent."""
    code, out, err = lease("work", queue_path, *arguments)

    assert (code, out) == (2, "")
    assert err.startswith(f"lease: {line}")


def test_work_without_its_extra_tells_what_to_install(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """The command line alone cannot send."""
    with patch.dict(sys.modules, {"httpcore": None}):
        for name in [name for name in sys.modules if name.startswith("lease.delivery")]:
            del sys.modules[name]
        ran = lease("work", queue_path, "--to", NOWHERE)

    assert ran.code == 2
    assert ran.err.startswith("lease: 'lease work' needs the http extra: pip install ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_runs_on_until_a_signal(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path, number: int
) -> None:
    """A worker finds what comes in while it is idle, and a signal is an orderly end."""
    with (
        receiving(tmp_path / "inbox.db") as url,
        started("work", queue_path, "--to", url, "--poll", "10ms") as process,
    ):
        fill(con, "a")
        until(lambda: job(con, "a")["status"] == "done")
        assert ended(process, number) == (0, "1 done\n", "")


class Holding:
    """A receiver that answers only when it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def __call__(self, sock: socket.socket) -> None:
        request_of(sock)
        self.asked.set()
        self.may_answer.wait(60)
        sock.sendall(answer("200 OK", b'{"accepted": true}'))


def test_a_first_signal_lets_the_job_in_hand_end(con: sqlite3.Connection, queue_path: Path) -> None:
    """What is being sent is recorded, and nothing else is begun."""
    fill(con, "a", "b")
    receiver = Holding()

    with (
        server(receiver) as url,
        started("work", queue_path, "--to", url, "--concurrency", "1") as process,
    ):
        assert receiver.asked.wait(60)
        process.send_signal(signal.SIGTERM)
        # The handler takes its time; the second signal must not come before it.
        until(lambda: _catches(process.pid, signal.SIGTERM) is False)
        receiver.may_answer.set()
        assert ended(process) == (0, "1 done\n", "")

    assert [each["status"] for each in all_jobs(con)] == ["done", "pending"]


def test_a_second_signal_ends_it_at_once(con: sqlite3.Connection, queue_path: Path) -> None:
    """The job in hand stays leased, and is taken over when that has ended."""
    fill(con, "a")
    receiver = Holding()

    with server(receiver) as url:
        with started("work", queue_path, "--to", url) as process:
            assert receiver.asked.wait(60)
            process.send_signal(signal.SIGINT)
            until(lambda: _catches(process.pid, signal.SIGINT) is False)
            assert ended(process, signal.SIGINT) == (-signal.SIGINT, "", "")
        receiver.may_answer.set()

    assert job(con, "a")["status"] == "leased"


class Meeting:
    """Takes so many requests before it answers any of them, which it does when it is told to."""

    def __init__(self, count: int) -> None:
        self.handlers = [self._ask] * (count - 1) + [self._ask_last]
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self._socks: list[socket.socket] = []

    def _ask(self, sock: socket.socket) -> None:
        request_of(sock)
        self._socks.append(sock.dup())

    def _ask_last(self, sock: socket.socket) -> None:
        self._ask(sock)
        self.asked.set()
        self.may_answer.wait(60)
        for each in self._socks:
            with each, suppress(OSError):
                each.sendall(answer("200 OK", b'{"accepted": true}'))


def test_work_sends_several_jobs_at_a_time(con: sqlite3.Connection, queue_path: Path) -> None:
    """As many as it was told to; a first signal lets all of them end, and begins no other."""
    fill(con, *"abcde")
    receiver = Meeting(3)

    with (
        server(*receiver.handlers) as url,
        started("work", queue_path, "--to", url, "--concurrency", "3") as process,
    ):
        assert receiver.asked.wait(60)
        process.send_signal(signal.SIGTERM)
        until(lambda: _catches(process.pid, signal.SIGTERM) is False)
        receiver.may_answer.set()
        assert ended(process) == (0, "3 done\n", "")

    assert [each["status"] for each in all_jobs(con)] == ["done"] * 3 + ["pending"] * 2


def test_a_second_signal_ends_several_sends_at_once(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """None of them is waited for; they stay leased."""
    fill(con, *"abc")
    receiver = Meeting(3)

    with server(*receiver.handlers) as url:
        with started("work", queue_path, "--to", url) as process:
            assert receiver.asked.wait(60)
            process.send_signal(signal.SIGTERM)
            until(lambda: _catches(process.pid, signal.SIGTERM) is False)
            assert ended(process, signal.SIGTERM) == (-signal.SIGTERM, "", "")
        receiver.may_answer.set()

    assert [each["status"] for each in all_jobs(con)] == ["leased"] * 3


def _catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_work_waits_for_a_locked_queue(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """A lock is told and waited for."""
    fill(con, "a")
    with receiving(tmp_path / "inbox.db") as url, ExitStack() as lock:
        lock.enter_context(writing(queue_path))
        with started("work", queue_path, "--to", url, "--once") as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            lock.close()
            assert ended(process) == (0, "1 done\n", "")

    assert line == ("the queue is locked by another process (database is locked); waiting for it\n")


def test_work_shows_its_progress_on_a_terminal(con: sqlite3.Connection, queue_path: Path) -> None:
    """Counts are drawn on one line, a stop is confirmed, and the terminal is left clean."""
    fill(con, "a")
    receiver = Holding()
    leader, follower = pty.openpty()
    with (
        server(receiver) as url,
        started("work", queue_path, "--to", url, stderr=follower) as process,
    ):
        os.close(follower)
        assert receiver.asked.wait(60)
        process.send_signal(signal.SIGINT)
        shown = b""
        while b"Stopping" not in shown:
            shown += os.read(leader, 1000)
        receiver.may_answer.set()
        assert process.wait(60) == 0
        while b"1 done" not in shown or not shown.endswith(b"\r\x1b[K"):
            shown += os.read(leader, 1000)
        assert process.stdout is not None
        assert process.stdout.read() == "1 done\n"
    os.close(leader)

    assert b"\r\x1b[KStopping after the job in hand; once more stops at once\r\n" in shown


def test_work_names_itself_differently_each_time(con: sqlite3.Connection, queue_path: Path) -> None:
    """Without a name a worker's own is random, and tells nothing of the host."""
    fill(con, "a", "b")
    for _ in range(2):
        with server(answering(answer("200 OK", b""))) as url:
            lease("work", queue_path, "--to", url, "--once")

    owners = [each["owner"] for each in all_jobs(con)]
    assert owners[0] != owners[1]
    assert all(re.fullmatch(rf"worker-{os.getpid()}-[0-9a-f]{{8}}", owner) for owner in owners)
