"""One run: when to claim, when to wait and for how long, and when it is over."""

import os
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from lease.db.locked import is_full, is_locked
from lease.dispatcher._mail import Mail
from lease.dispatcher._model import Options, Tally, Until
from lease.dispatcher._senders import FORKED
from lease.dispatcher._work import Work

# An idle worker looks again after this, then after twice as long, up to its `poll_ms`.
_FIRST_PAUSE_MS = 50

# Each try at a lock has already waited for SQLite's own time-out.
_TRIES = 30

# SQLite forbids so much as closing a connection in a forked child; here they are never collected.
_inherited: list[sqlite3.Connection] = []

_Found = TypeVar("_Found")
_Instead = TypeVar("_Instead")


class Run:
    """What one call of `Dispatcher.run` does.

    Args:
        options: of the dispatcher.
        until: when the run ends by itself.
        mail: through which the other threads, and `stop`, reach this one.
        is_stopped: tells whether the run was told to stop.
    """

    def __init__(
        self, options: Options, until: Until, mail: Mail, is_stopped: Callable[[], bool]
    ) -> None:
        self._options = options
        self._until = until
        self._is_stopped = is_stopped
        self._concurrency = 1 if until == "once" else options.concurrency
        self._work = Work(options, self._concurrency, mail)
        self._has_looked = False
        self._has_failed = False
        self._pid = os.getpid()

    def run(self) -> Tally:
        """Open the file, deliver, and leave nothing behind."""
        try:
            con = self._patiently(self._work.connect, None)
            if con is not None:
                self._use(con)
        finally:
            self._leave()
        self._work.breaker.check()
        return Tally(**self._work.tally)

    def _use(self, con: sqlite3.Connection) -> None:
        try:
            self._deliver(con)
        except BaseException as error:
            self._wind_up(con, error)
            raise
        finally:
            if os.getpid() == self._pid:
                con.close()
            else:
                _inherited.append(con)

    def _deliver(self, con: sqlite3.Connection) -> None:
        pauses = 0
        self._work.gather(0)
        while True:
            found = self._patiently(lambda: self._step(con), 0)
            if self._is_over(found):
                return
            if found == 0:
                pauses = 0
                # There may be more to do at once, unless every sender is busy.
                self._work.gather(0 if self._free() else None)
            elif self._free():
                if not self._work.out:
                    self._options.on_idle(found)
                self._work.gather(self._pause_s(pauses, found))
                pauses += 1

    def _step(self, con: sqlite3.Connection) -> int | None:
        """Record and claim what there is, in one transaction at most.

        Returns:
            0 if there may be more to do at once, in how many milliseconds the next job is due,
            or None if no job is open.
        """
        free = self._free()
        if self._work.records:
            self._work.commit(con, free)
            return 0
        if not free:
            return 0
        found = self._work.look(con, free)
        self._has_looked = True
        return found

    def _free(self) -> int:
        """Return how many jobs may be claimed: as many as senders wait for one, never more."""
        has_claimed = self._until == "once" and self._has_looked
        if has_claimed or self._has_failed or self._is_stopped():
            return 0
        return min(self._concurrency, self._work.breaker.room()) - self._work.out

    def _is_over(self, found: int | None) -> bool:
        if self._work.out or self._work.records:
            return False
        return not self._free() or (self._until == "drained" and found is None)

    def _wind_up(self, con: sqlite3.Connection, error: BaseException) -> None:
        """Wait for the sends that an error has overtaken, and record them."""
        self._has_failed = True
        self._work.hush()
        try:
            while os.getpid() == self._pid and (self._work.out > 0 or self._work.records):
                self._patiently(lambda: self._step(con), 0)
                self._work.gather(None if self._work.out > 0 else 0)
        except BaseException as another:  # noqa: BLE001  (the first error is the one to come out)
            error.add_note(f"nor was every send in hand recorded: {another!r}")

    def _leave(self) -> None:
        # The threads of a forked child's parent are not there to be waited for.
        if os.getpid() == self._pid:
            self._work.close()

    def _patiently(self, step: Callable[[], _Found], if_stopped: _Instead) -> _Found | _Instead:
        """Take a step as often as a lock or a full disk is in the way.

        What has been sent is not given up before its lease has ended.
        """
        tries = 0
        while True:
            if os.getpid() != self._pid:
                raise RuntimeError(FORKED)
            try:
                return step()
            except sqlite3.OperationalError as error:
                is_last = self._until != "stopped" and tries + 1 >= _TRIES
                passes = is_locked(error) or is_full(error)
                if not passes or (is_last and not self._work.records):
                    raise
                self._work.expire()
                if tries % _TRIES == 0:
                    self._work.tell_trouble(error)
            self._work.gather(self._pause_s(tries, None))
            tries += 1
            if self._is_stopped() and not self._work.records:
                return if_stopped

    def _pause_s(self, pauses: int, due_in_ms: int | None) -> float:
        """Return how long to wait: longer each time, but not beyond the next job."""
        options = self._options
        longest_ms = min(options.poll_ms, _FIRST_PAUSE_MS << min(pauses, 20))
        pause_ms = longest_ms * (1 + options.jitter()) / 2
        if due_in_ms is not None:
            pause_ms = min(pause_ms, due_in_ms)
        return pause_ms / 1000
