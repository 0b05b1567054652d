"""Processes to be tortured: forked in milliseconds from one that has imported everything.

`Nursery` is the parent's end. Run as `python -m tests.support.torture` this is the other one: it
forks a child for each role that it is told, and is the parent that waits for their ends.
"""

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, Self

from lease import jobs
from lease.cli import enqueue as _enqueue_command  # noqa: F401  (so that a child need not)
from lease.cli import work as _work_command  # noqa: F401  (likewise)
from lease.cli._root import run
from lease.clock import wall_ms
from lease.db.locked import is_locked
from lease.delivery import HttpSender
from lease.dispatcher import Dispatcher
from lease.errors import Conflict
from lease.inbox.http import serve
from lease.model import Event
from tests.support.processes import ROOT, environment

#: Jobs are as old as this when they are taken in, so that a clock far behind sees them too.
AGE_MS = 600_000

#: Longest way that a worker's clock is ahead or behind.
SKEW_MS = 300_000

#: What a child ends with that met an error which its affliction explains.
AFFLICTED = 3

_LEASE_MS = 400


class Nursery:
    """Starts children, sends them signals and tells how they ended.

    Args:
        folder: where what a child says on stderr goes, `NUMBER.log`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.torture"],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, role: str, **options: object) -> int:
        """Start a child in a role; return its process id."""
        return int(self._ask("start", str(self._folder), role, options))

    def signal(self, pid: int, number: int) -> int | None:
        """Send a signal; return the code of the child's end if it has ended, by this or before."""
        return self._ask("signal", pid, number)  # type: ignore[no-any-return]  # from JSON

    def ended(self, pid: int) -> int | None:
        """Return the code that a child ended with, or None while it runs."""
        return self.signal(pid, 0)

    def _ask(self, *words: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()


def work(path: str, url: str, skew_ms: int, until: str, owner: str) -> None:
    """Deliver with a clock that is wrong by so much."""
    with HttpSender(url, timeout_s=0.3) as sender:
        Dispatcher(
            path,
            sender,
            owner=owner,
            lease_ms=_LEASE_MS,
            base_ms=20,
            cap_ms=100,
            poll_ms=50,
            clock=lambda: wall_ms() + skew_ms,
        ).run(until)  # type: ignore[arg-type]  # one of its words


def command(*arguments: str) -> None:
    """Run the `lease` command."""
    code = run(list(arguments))
    if code:
        raise SystemExit(code)


def work_by_command(path: str, url: str) -> None:
    """Deliver as the command does."""
    times = ["--lease", f"{_LEASE_MS}ms", "--timeout", "300ms", "--backoff", "20ms"]
    times += ["--backoff-cap", "100ms", "--poll", "50ms"]
    # A bulk redrive brings back any number of jobs at odds, and the address is right all the same.
    command("work", path, "--to", url, *times, "--give-up-after", "0")


def receive(inbox: str, port: int, told: str) -> None:
    """Accept events, with effects in a table that would hold any number of them for an id."""

    def tell(url: str) -> None:
        Path(f"{told}.new").write_text(url)
        os.rename(f"{told}.new", told)

    serve(inbox, port=port, on_ready=tell, effect=record)


def record(con: sqlite3.Connection, event: Event) -> None:
    """Make the effect of an event, unless it is at odds with what is known here."""
    if event["id"].startswith("odd"):
        raise Conflict("at odds with what is known here")
    con.execute("INSERT INTO ledger (id, qty) VALUES (:id, :qty)", event)


def enqueue(path: str, accepted: str, name: str, seed: int) -> None:
    """Take in jobs of every kind, and note each once it is accepted."""
    chance = random.Random(seed)
    log = os.open(accepted, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with closing(opened(path)) as con:
        for number in range(16):
            kind, ttl_ms, max_attempts = chance.choice(KINDS)
            event = Event(id=f"{kind}-{name}-{number}", qty=chance.randint(1, 999))
            now_ms = wall_ms() - AGE_MS
            patiently(
                lambda e=event, n=now_ms, t=ttl_ms, m=max_attempts: jobs.enqueue(
                    con, e, n, AGE_MS + t, m
                )
            )
            os.write(log, f"{event['id']}\n".encode())


def enqueue_file(path: str, source: str) -> None:
    """Take in a file, all of it or nothing."""
    command("enqueue", path, "--from", source, "--ttl", "2h", "--attempts", "1000")


def redrive(path: str, seed: int) -> None:
    """Release dead jobs one by one."""
    chance = random.Random(seed)
    with closing(opened(path)) as con:
        while dead := patiently(lambda: jobs.list_jobs(con, "dead")):
            job = chance.choice(dead)
            with suppress(ValueError):
                # Another operator may have come first.
                patiently(
                    lambda j=job["id"]: jobs.redrive(
                        con, j, wall_ms() - AGE_MS, AGE_MS + 3_600_000, "again"
                    )
                )
            time.sleep(0.05)


def redrive_in_bulk(path: str, notes: str, name: str, seed: int) -> None:
    """Release dead jobs by one walk after the other."""
    chance = random.Random(seed)
    say = noting(notes)
    with closing(opened(path)) as con:
        for number in count():
            if not patiently(lambda: jobs.stats(con)["dead"]):
                return
            reason, max_ids = chance.choice(_REASONS), chance.choice(_BATCHES)
            walk_and_release(con, f"bulk-{name}-{number}", reason, max_ids, say)
            time.sleep(0.02)


def walk_and_release(
    con: sqlite3.Connection,
    name: str,
    reason: jobs.Reason | None,
    max_ids: int,
    say: Callable[[object], None],
) -> None:
    """Release what is dead, batch by batch; say of each what it is, and then what became of it."""
    walk = patiently(lambda: jobs.dead_ids(con, reason, max_ids=max_ids))
    for number in count():
        before = patiently(lambda: jobs.stats(con)["redrives"])
        # A walk that meets a lock ends early: its next batch is none.
        ids = patiently(lambda: next(walk, None))
        if ids is None:
            return
        note = f"{name}-{number}"
        say({"walk": name, "note": note, "before": before, "ids": ids})
        releases = patiently(
            lambda i=ids, n=note: jobs.redrive_many(
                con, i, wall_ms() - AGE_MS, AGE_MS + 3_600_000, n
            )
        )
        say(releases)


def watch(path: str, notes: str) -> None:
    """Look at the queue's stats all the while, and note every look."""
    say = noting(notes)
    with closing(opened(path)) as con:
        while True:
            say(patiently(lambda: jobs.stats(con)))
            time.sleep(0.01)


#: Kind, time to live, attempts. What is neither hurried nor scarce nor at odds must get done.
KINDS = (
    *[("plain", 3_600_000, 1000)] * 6,
    ("hurried", 2_000, 1000),
    ("scarce", 3_600_000, 2),
    ("odd", 3_600_000, 1000),
)


#: What a bulk redrive asks for, and in batches of what size.
_REASONS = (None, "deadline", "exhausted", "permanent")
_BATCHES = (1, 3, 10, 1000)


def opened(path: str) -> sqlite3.Connection:
    """Open the queue as it is, whichever journal it has."""
    return patiently(lambda: jobs.open_queue(path, create=False, journal_mode=None))


def patiently(step: Callable[[], Any]) -> Any:
    """Take a step until the file is not locked."""
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise


def noting(path: str) -> Callable[[object], None]:
    """Return what writes a line into a file of the child's own, for the judges."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(said: object) -> None:
        os.write(log, f"{json.dumps(said)}\n".encode())

    return say


def noted(path: Path) -> list[Any]:
    """Return what a child noted, without the line that it was killed in the midst of."""
    whole, _, _ = path.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


ROLES: dict[str, Callable[..., None]] = {
    "work": work,
    "work_by_command": work_by_command,
    "receive": receive,
    "enqueue": enqueue,
    "enqueue_file": enqueue_file,
    "redrive": redrive,
    "redrive_in_bulk": redrive_in_bulk,
    "watch": watch,
}

#: What may befall a child, and the limit that brings it about.
AFFLICTIONS = {"full disk": resource.RLIMIT_FSIZE, "no descriptors": resource.RLIMIT_NOFILE}


def _play(folder: str, role: str, options: dict[str, Any]) -> int:
    """Be a child: play the role to its end, and return the code of it."""
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(f"{folder}/{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, target in ((null, 0), (null, 1), (log, 2)):
        os.dup2(number, target)
    os.closerange(3, 256)
    affliction, limit = options.pop("affliction", None) or (None, 0)
    kind = AFFLICTIONS.get(affliction)
    usual = resource.getrlimit(kind or resource.RLIMIT_NOFILE)
    if kind:
        resource.setrlimit(kind, (limit, usual[1]))
    try:
        ROLES[role](**options)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (the parent is told)
        if kind:
            resource.setrlimit(kind, usual)
        os.write(2, f"{role} {affliction}: ".encode() + traceback.format_exc().encode())
        if affliction and isinstance(error, (sqlite3.OperationalError, OSError, SystemExit)):
            return AFFLICTED
        return 1
    return 0


def _nurse() -> None:
    """Do what the parent says until it has no more to say; then let no child live on."""
    live: dict[int, int | None] = {}
    for line in sys.stdin:
        word, *rest = json.loads(line)
        if word == "start":
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = _play(*rest)
                finally:
                    os._exit(code)
            live[pid] = None
            answer: object = pid
        else:
            answer = _signal(live, *rest)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in live:
        _signal(live, pid, signal.SIGKILL)


def _signal(live: dict[int, int | None], pid: int, number: int) -> int | None:
    if live[pid] is not None:
        return live[pid]
    if number:
        os.kill(pid, number)
    # Only SIGKILL surely ends a process, at once.
    found, status = os.waitpid(pid, 0 if number == signal.SIGKILL else os.WNOHANG)
    if found:
        live[pid] = os.waitstatus_to_exitcode(status)
    return live[pid]


if __name__ == "__main__":
    _nurse()
