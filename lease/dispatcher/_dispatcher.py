"""The face of the worker: its arguments, `run` and `stop`."""

import random
from collections.abc import Callable

from lease import checks
from lease.clock import SteadyClock
from lease.db.connection import StrPath
from lease.dispatcher._mail import Mail
from lease.dispatcher._model import (
    MAX_CONCURRENCY,
    MAX_FLUSH_MS,
    Options,
    Result,
    Tally,
    Until,
)
from lease.dispatcher._run import Run
from lease.limits import CEILING, WIDE, Limits
from lease.model import Clock, Send


class Dispatcher:
    """Delivers the jobs of one queue file.

    No job stops the others: what a send raises is the job's own result. A job is claimed only
    when a sender is free for it, so that none has to be given back when the run ends. Claims and
    results share transactions; none is open on the account of a send. While no job is due the
    file is only read. A file that is locked, or whose disk is full, is waited for.

    While a send runs, or its result waits to be recorded, the lease is renewed before a third of
    it is left, up to the job's deadline. That is done by a thread of its own, which neither the
    sends nor the callbacks can hold up. A result that comes after its lease all the same, for
    instance because the whole process was stopped, is refused by the queue and told as `stale`.

    Workers of one file take turns, by locks on two files beside it, `…-gate1` and `…-gate2`.
    These stay there: to remove one while workers run takes it from some of them only. Where they
    cannot be made, the workers go without, which is told as trouble.

    Args:
        path: an existing queue file; never created.
        send: delivers an event, its own copy, outside every transaction. Returning exactly True
            settles the job, raising `Retryable` postpones it, raising `Permanent` quarantines
            it. Anything else leaves the lease to run out, after which the job is sent again;
            what is no `Exception` ends the run. With a concurrency above 1 it is called by
            several threads at a time.
        owner: identifier of the worker; another one for each that runs at a time.
        concurrency: how many jobs are sent at a time, 1-1000. One at a time, they are sent in
            order, by the thread that runs, and each result is told before the next send.
        lease_ms: longest lease, milliseconds from 1: how long a job waits for another worker
            after this one has died.
        base_ms: backoff after the first attempt, milliseconds from 1.
        cap_ms: longest backoff, milliseconds from `base_ms`.
        poll_ms: longest pause between two looks at an idle queue, milliseconds from 1.
        flush_ms: how long a result waits for others to be recorded with, while there are any to
            come, milliseconds from 0 to 1000; never more than an eighth of the lease.
        clock: returns the present in milliseconds and never goes back, for any thread; None for
            the wall clock.
        jitter: returns a share from 0 to 1, drawn anew for each backoff and each pause.
        give_up_after: end the run once so many jobs were refused for good, by `Permanent`, and
            none was accepted since its start; until one is accepted, no more are sent at a time
            than are left of that number. An int from 1, or None for never.
        limits: the upper bounds of the numbers.
        on_result: told of each job that was sent, once its result is recorded.
        on_idle: told, when nothing is being sent, before each pause of the milliseconds until
            the next job is due, or None.
        on_trouble: told of a lock or a full disk that has to be waited for, when it begins and
            now and then, and once if the workers cannot take turns.

    The callbacks are called by the thread that runs. What they raise ends the run, once the
    sends in hand have ended and are recorded, which is told nobody.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
    """

    def __init__(
        self,
        path: StrPath,
        send: Send,
        *,
        owner: str,
        concurrency: int = 1,
        lease_ms: int = 30_000,
        base_ms: int = 1_000,
        cap_ms: int = 900_000,
        poll_ms: int = 1_000,
        flush_ms: int = 2,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        give_up_after: int | None = None,
        limits: Limits = WIDE,
        on_result: Callable[[Result], object] = lambda _result: None,
        on_idle: Callable[[int | None], object] = lambda _due_in_ms: None,
        on_trouble: Callable[[Exception], object] = lambda _error: None,
    ) -> None:
        if give_up_after is not None:
            checks.integer("give_up_after", give_up_after, 1, CEILING)
        self._options = Options(
            path=path,
            send=send,
            owner=checks.identifier("owner", owner),
            concurrency=checks.integer("concurrency", concurrency, 1, MAX_CONCURRENCY),
            lease_ms=checks.integer("lease_ms", lease_ms, 1, limits.max_lease_ms),
            base_ms=checks.integer("base_ms", base_ms, 1, limits.max_delay_ms),
            cap_ms=checks.integer("cap_ms", cap_ms, base_ms, limits.max_delay_ms),
            poll_ms=checks.integer("poll_ms", poll_ms, 1, limits.max_delay_ms),
            flush_ms=checks.integer("flush_ms", flush_ms, 0, MAX_FLUSH_MS),
            clock=SteadyClock() if clock is None else clock,
            jitter=jitter,
            give_up_after=give_up_after,
            limits=limits,
            on_result=on_result,
            on_idle=on_idle,
            on_trouble=on_trouble,
        )
        self._is_stopped = False
        self._mail = Mail()

    def stop(self) -> None:
        """End the run after the jobs in hand; from any thread or signal handler, at any time.

        A dispatcher that was stopped stays so: a later run ends at once.
        """
        self._is_stopped = True
        self._mail.put(None)

    def run(self, until: Until = "stopped") -> Tally:
        """Deliver jobs until the run ends by itself or is stopped.

        Args:
            until: `stopped` goes on for ever; `drained` ends when no job is pending or leased,
                by whomever; `once` ends after one claim of one job, or at once if no job is due.

        Returns:
            What became of the sends of this run.

        Raises:
            FileNotFoundError: no ordinary file is there.
            Refused: the receiver refuses every job, as often as `give_up_after` says; all is
                recorded and told.
            UnusableFile: the file cannot serve as a queue.
            sqlite3.Error: the file failed, or stayed locked or its disk full for long in a run
                that was to end by itself.
            RuntimeError: the process was forked, and this is the child.
            ValueError: the clock or the jitter returned something unusable.
            BaseException: what a callback raised, or a send that was interrupted.

        Hooks: none.
        """
        # A fresh one: a send that an earlier run did not wait for may still answer to the old.
        self._mail = Mail()
        return Run(self._options, until, self._mail, lambda: self._is_stopped).run()
