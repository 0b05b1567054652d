"""The long-running worker: claim, send outside every transaction, record, until told to stop."""

import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Literal, NamedTuple, TypeVar

from lease import checks, jobs
from lease.clock import SteadyClock
from lease.db.connection import StrPath
from lease.db.locked import is_locked
from lease.errors import BadAck, Permanent, Retryable
from lease.limits import WIDE, Limits
from lease.model import Clock, Event, Outcome, Send, Ticket

#: When a run ends by itself: never, when no job is pending or leased, or after one claim.
Until = Literal["stopped", "drained", "once"]

# An idle worker looks again after this, then after twice as long, up to its `poll_ms`.
_FIRST_PAUSE_MS = 50

# Each try has already waited for SQLite's own time-out.
_LOCK_TRIES = 30

# SQLite forbids so much as closing a connection in a forked child; here they are never collected.
_inherited: list[sqlite3.Connection] = []


_Found = TypeVar("_Found")


class _StoppedError(Exception):
    """The run was stopped while it waited for a lock."""


class Result(NamedTuple):
    """What became of one job that was sent.

    Args:
        id: identifier of the job.
        token: the claim's token.
        attempt: the claim's attempt, from 1.
        status: `done`, `dead`, `pending` for a later attempt, `leased` where the send neither
            confirmed nor was classified and the lease runs out by itself, or `stale` where the
            lease had ended or moved on.
        delay_ms: wait before the next attempt of a `pending` job, milliseconds.
        error: what the send raised, or the `BadAck` for what it returned; None if confirmed.
    """

    id: str
    token: int
    attempt: int
    status: str
    delay_ms: int
    error: Exception | None


class Tally(NamedTuple):
    """How many sends of a run left their job in which state; the states are those of `Result`."""

    done: int = 0
    pending: int = 0
    dead: int = 0
    leased: int = 0
    stale: int = 0


class Dispatcher:
    """Delivers the jobs of one queue file, one after the other.

    No job stops the others: what a send raises is the job's own result. While no job is due the
    file is only read. A locked file is waited for.

    Args:
        path: an existing queue file; never created.
        send: delivers an event, its own copy, outside every transaction. Returning exactly True
            settles the job, raising `Retryable` postpones it, raising `Permanent` quarantines
            it. Anything else leaves the lease to run out, after which the job is sent again.
        owner: identifier of the worker; another one for each that runs at a time.
        lease_ms: longest lease, milliseconds from 1; longer than any send takes.
        base_ms: backoff after the first attempt, milliseconds from 1.
        cap_ms: longest backoff, milliseconds from `base_ms`.
        poll_ms: longest pause between two looks at an idle queue, milliseconds from 1.
        clock: returns the present in milliseconds and never goes back; None for the wall clock.
        jitter: returns a share from 0 to 1, drawn anew for each backoff and each pause.
        limits: the upper bounds of the numbers.
        on_result: told of each job that was sent, once its result is recorded.
        on_idle: told before each pause of the milliseconds until the next job is due, or None.
        on_trouble: told of a lock that has to be waited for, when it begins and now and then.

    What the callbacks raise ends the run. They are called by the thread that runs.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
    """

    def __init__(
        self,
        path: StrPath,
        send: Send,
        *,
        owner: str,
        lease_ms: int = 30_000,
        base_ms: int = 1_000,
        cap_ms: int = 900_000,
        poll_ms: int = 1_000,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        limits: Limits = WIDE,
        on_result: Callable[[Result], object] = lambda _result: None,
        on_idle: Callable[[int | None], object] = lambda _due_in_ms: None,
        on_trouble: Callable[[sqlite3.OperationalError], object] = lambda _error: None,
    ) -> None:
        self._path = path
        self._send = send
        self._owner = checks.identifier("owner", owner)
        self._lease_ms = checks.integer("lease_ms", lease_ms, 1, limits.max_lease_ms)
        self._base_ms = checks.integer("base_ms", base_ms, 1, limits.max_delay_ms)
        self._cap_ms = checks.integer("cap_ms", cap_ms, base_ms, limits.max_delay_ms)
        self._poll_ms = checks.integer("poll_ms", poll_ms, 1, limits.max_delay_ms)
        self._clock = SteadyClock() if clock is None else clock
        self._jitter = jitter
        self._limits = limits
        self._on_result = on_result
        self._on_idle = on_idle
        self._on_trouble = on_trouble
        self._tally: Counter[str] = Counter()
        self._stopping = False
        # Unlike an Event's set, its put may interrupt its own get in a signal handler.
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._pid = 0

    def stop(self) -> None:
        """End the run after the job in hand; from any thread or signal handler, at any time.

        A dispatcher that was stopped stays so: a later run ends at once.
        """
        self._stopping = True
        self._wake.put(None)

    def run(self, until: Until = "stopped") -> Tally:
        """Deliver jobs until the run ends by itself or is stopped.

        Args:
            until: `stopped` goes on for ever; `drained` ends when no job is pending or leased,
                by whomever; `once` ends after one claim, or at once if no job is due.

        Returns:
            What became of the sends of this run.

        Raises:
            FileNotFoundError: no ordinary file is there.
            UnusableFile: the file cannot serve as a queue.
            sqlite3.Error: the file failed, or stayed locked for long in a run that was to end by
                itself.
            RuntimeError: the process was forked, and this is the child.
            ValueError: the clock or the jitter returned something unusable.

        Hooks: none.
        """
        self._pid = os.getpid()
        self._tally.clear()
        with suppress(_StoppedError):
            con = self._patiently(
                lambda: jobs.open_queue(self._path, create=False, journal_mode=None), until
            )
            try:
                self._deliver(con, until)
            finally:
                self._leave(con)
        return Tally(**self._tally)

    def _deliver(self, con: sqlite3.Connection, until: Until) -> None:
        pauses = 0
        while not self._stopping:
            found = self._patiently(lambda: self._look(con), until)
            if isinstance(found, dict):
                self._on_result(self._work(con, found))
                pauses = 0
            if until == "once" or (until == "drained" and found is None):
                return
            if not isinstance(found, dict) and found != 0:
                self._on_idle(found)
                self._pause(pauses, found)
                pauses += 1

    def _look(self, con: sqlite3.Connection) -> Ticket | int | None:
        """Claim a job, or return in how many milliseconds the next one is due, if there is one."""
        due_ms = jobs.next_due(con)
        if due_ms is None:
            return None
        now_ms = self._clock()
        if due_ms > now_ms:
            return due_ms - now_ms
        # None where the claim only buried jobs or came second: there may be more to see.
        return jobs.claim(con, self._owner, now_ms, self._lease_ms, limits=self._limits) or 0

    def _work(self, con: sqlite3.Connection, ticket: Ticket) -> Result:
        """Send the claimed job and record what came of it."""
        outcome, error = self._try_to_send(ticket)
        self._refuse_fork()
        delay_ms = 0
        if outcome == "retry":
            delay_ms = jobs.retry_delay(
                ticket["attempt"], self._base_ms, self._cap_ms, self._jitter(), limits=self._limits
            )
        status = "leased" if outcome is None else self._finish(con, ticket, outcome, delay_ms)
        self._tally[status] += 1
        return Result(ticket["id"], ticket["token"], ticket["attempt"], status, delay_ms, error)

    def _try_to_send(self, ticket: Ticket) -> tuple[Outcome | None, Exception | None]:
        try:
            answer = self._send(Event(id=ticket["id"], qty=ticket["qty"]))
        except Retryable as error:
            return "retry", error
        except Permanent as error:
            return "permanent", error
        except Exception as error:  # noqa: BLE001  (it is this job's own; the others go on)
            return None, error
        if answer is True:
            return "ok", None
        return None, BadAck(f"send returned {checks.shown(answer)}, not True")

    def _finish(
        self, con: sqlite3.Connection, ticket: Ticket, outcome: Outcome, delay_ms: int
    ) -> str:
        """Record the outcome, through any lock, until the lease has ended."""
        tries = 0
        while True:
            now_ms = self._clock()
            try:
                status = jobs.finish(con, ticket, outcome, now_ms, delay_ms, limits=self._limits)
            except sqlite3.OperationalError as error:
                if not is_locked(error):
                    raise
                if now_ms >= ticket["lease_until"]:
                    return "stale"
                self._bear(error, tries)
                tries += 1
            else:
                return status or "stale"

    def _patiently(self, step: Callable[[], _Found], until: Until) -> _Found:
        """Take a step as often as a lock is in the way."""
        tries = 0
        while True:
            self._refuse_fork()
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not is_locked(error) or (until != "stopped" and tries + 1 >= _LOCK_TRIES):
                    raise
                self._bear(error, tries)
                tries += 1
            if self._stopping:
                raise _StoppedError

    def _bear(self, error: sqlite3.OperationalError, tries: int) -> None:
        if tries % _LOCK_TRIES == 0:
            self._on_trouble(error)
        self._pause(tries, None)

    def _pause(self, pauses: int, due_in_ms: int | None) -> None:
        """Sleep longer each time, but not beyond the next job, nor beyond a call of `stop`."""
        longest_ms = min(self._poll_ms, _FIRST_PAUSE_MS << min(pauses, 20))
        pause_ms = longest_ms * (1 + self._jitter()) / 2
        if due_in_ms is not None:
            pause_ms = min(pause_ms, due_in_ms)
        with suppress(Empty):
            self._wake.get(timeout=pause_ms / 1000)

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "a forked child must not use its parent's queue file; "
                "start another Dispatcher in the child"
            )

    def _leave(self, con: sqlite3.Connection) -> None:
        if os.getpid() == self._pid:
            con.close()
        else:
            _inherited.append(con)
