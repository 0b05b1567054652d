"""The story: two dispatchers, of which one dies after the receiver's commit and before its own."""

import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing

from lease import jobs
from lease.clock import wall_ms
from lease.demo._evidence import Evidence, Kill, read_evidence, read_inbox
from lease.demo._processes import Children, DemoError, Heard
from lease.model import Event

_JOBS = 36
_HOLD_AT = 8
_LEASE_MS = 2_500
_TIMEOUT_S = 2.0
_TTL_MS = 600_000
_ATTEMPTS = 16
_MAX_FAILURES = 5

# The whole is to end within 20 seconds, its start and the reading of the evidence included.
_SECONDS = 16.0

#: Told who does what, as it happens, with the seconds since the start.
Tell = Callable[[float, str, str], object]


def run_demo(folder: str, to: str | None = None, tell: Tell = lambda *_: None) -> Evidence:
    """Play the story with real processes and return what the databases say afterwards.

    Args:
        folder: an existing folder without `queue.db` and `inbox.db`, which are left in it.
        to: URL of a receiver of somebody's own; None starts one. Its inbox cannot be seen.
        tell: told of each step.

    Raises:
        DemoError: the story could not be played to its end.
    """
    return _Story(folder, to, tell).play()


class _Story:
    def __init__(self, folder: str, to: str | None, tell: Tell) -> None:
        self._folder = folder
        self._to = to
        self._tell_at = tell
        self._started_s = time.monotonic()
        self._queue = os.path.join(folder, "queue.db")
        self._inbox = os.path.join(folder, "inbox.db") if to is None else None
        self._sends: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failures = 0

    def play(self) -> Evidence:
        with Children(self._folder, _SECONDS) as children:
            url = self._to or self._start_receiver(children)
            self._enqueue()
            self._start_dispatchers(children, url)
            kill = self._kill_in_the_gap(children)
            self._recover(children, kill)
            if self._to is None:
                children.end("receiver", by=signal.SIGTERM)
        return read_evidence(self._queue, self._inbox, self._sends, kill)

    def _tell(self, who: str, text: str) -> None:
        self._tell_at(time.monotonic() - self._started_s, who, text)

    def _start_receiver(self, children: Children) -> str:
        children.start("receiver", "receive", inbox=self._inbox)
        url = str(children.hear()["url"])
        self._tell("receiver", f"listens at {url}, with inbox.db behind it")
        return url

    def _enqueue(self) -> None:
        # Another run must not meet its jobs at a receiver that remembers.
        prefix = "job" if self._to is None else f"demo-{secrets.token_hex(4)}"
        now_ms = wall_ms()
        with closing(jobs.open_queue(self._queue)) as con:
            for number in range(1, _JOBS + 1):
                event = Event(id=f"{prefix}-{number:02}", qty=number)
                jobs.enqueue(con, event, now_ms, _TTL_MS, _ATTEMPTS)
        self._tell("queue", f"{_JOBS} jobs committed to queue.db")

    def _start_dispatchers(self, children: Children, url: str) -> None:
        for name, hold_at in (("first", _HOLD_AT), ("second", None)):
            children.start(
                name,
                "dispatch",
                queue=self._queue,
                url=url,
                owner=name,
                lease_ms=_LEASE_MS,
                timeout_s=_TIMEOUT_S,
                hold_at=hold_at,
            )
        for _ in ("first", "second"):
            children.hear()
        self._tell("dispatchers", "first and second are up")

    def _kill_in_the_gap(self, children: Children) -> Kill:
        children.go("first")
        while True:
            heard = self._hear(children)
            if heard.word == "sending" and heard["is_last"]:
                self._tell("first", f"has delivered {_HOLD_AT - 1} jobs and sends {heard['id']}")
                children.go("second")
            elif heard.word == "accepted":
                return self._kill(children, heard["id"])

    def _kill(self, children: Children, job_id: str) -> Kill:
        if self._inbox is None:
            committed = None
            self._tell("receiver", f"has answered that {job_id} is accepted")
        else:
            committed = job_id in read_inbox(self._inbox).effects
            self._tell("receiver", f"has committed {job_id} and answered that it is accepted")
        code = children.kill("first")
        with closing(jobs.open_queue(self._queue, create=False)) as con:
            (job,) = (each for each in jobs.list_jobs(con) if each["id"] == job_id)
        self._tell("SIGKILL", "first is dead, and has not recorded it")
        self._tell("queue", f"still has {job_id} {job['status']}, under token {job['token']}")
        return Kill(job_id, code, job["status"], job["token"], committed)

    def _recover(self, children: Children, kill: Kill) -> None:
        waits = False
        while True:
            heard = self._hear(children)
            if heard.word == "drained":
                break
            if heard.word == "idle" and not waits:
                waits = True
                left_s = heard["due_in_ms"] / 1000
                self._tell(
                    "second",
                    f"has delivered {self._done['second']} jobs; "
                    f"the lease on {kill.job} ends in {left_s:.1f} s",
                )
            elif heard.word == "sending" and heard["id"] == kill.job:
                self._tell("second", f"takes {kill.job} over and sends it again")
            elif heard.word == "result" and heard["id"] == kill.job:
                self._tell(
                    "second",
                    f"records {kill.job} as {heard['status']}, under token {heard['token']}",
                )
        children.end("second")

    def _hear(self, children: Children) -> Heard:
        """Return the next thing said, counted; give up on a receiver that accepts nothing."""
        heard = children.hear()
        if heard.word == "sending":
            self._sends[heard["id"]] += 1
        elif heard.word == "result" and heard["status"] == "done":
            self._done[heard.name] += 1
        elif heard.word == "result":
            self._failures += 1
            self._tell(heard.name, f"could not deliver {heard['id']}: {heard['error']}")
            if self._failures >= _MAX_FAILURES:
                raise DemoError(f"the receiver does not accept the jobs: {heard['error']}")
        return heard
