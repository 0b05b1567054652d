"""Deliver pending records through the lease queue: finite attempts, quarantine, redrive."""

import json
import logging
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple

from lease import checks, jobs
from lease.breaker import Breaker
from lease.clock import SteadyClock
from lease.db.locked import is_locked
from lease.errors import BadAck
from lease.limits import CEILING, WIDE
from lease.model import Clock, Event, RecordedEvent, Send, Settled
from lease.outbox._feed import PAGE, Feeder
from lease.outbox._stop import Stop, Stopping
from lease.outbox.model import Record

#: When a delivery ends by itself: never, or when no record is pending but those of dead jobs.
Until = Literal["stopped", "drained"]

#: Delivers one record to the outside world; only an exact True is an acknowledgement.
SendRecord = Callable[[Record], object]

#: Called with the event and the job's new status inside the transaction that records it.
Settling = Callable[[Event, str], object]

_log = logging.getLogger("lease.outbox")


class Delivered(NamedTuple):
    """What became of one send: the job's new status, or `leased` or `stale`, and the error."""

    id: str
    status: str
    error: Exception | None


class Tally(NamedTuple):
    """How many sends of a run left their job in which state."""

    done: int = 0
    pending: int = 0
    dead: int = 0
    leased: int = 0
    stale: int = 0


def document(record: Record) -> RecordedEvent:
    """Return what a receiver gets of a record: id, type, and the payload as a document."""
    return RecordedEvent(
        id=record["id"],
        event_type=record["event_type"],
        payload=json.loads(record["payload_json"]),
    )


def deliver(
    con: sqlite3.Connection,
    send: SendRecord,
    *,
    owner: str,
    queue: sqlite3.Connection | None = None,
    until: Until = "stopped",
    stop: Stopping | None = None,
    ttl_ms: int = 86_400_000,
    max_attempts: int = 16,
    lease_ms: int = 30_000,
    base_ms: int = 1_000,
    cap_ms: int = 900_000,
    poll_ms: int = 1_000,
    clock: Clock | None = None,
    jitter: Callable[[], float] = random.random,
    give_up_after: int | None = None,
    on_result: Callable[[Delivered], object] = lambda _result: None,
) -> Tally:
    """Send every pending record as a job of its own, until told to stop.

    A record becomes processed in the very transaction that makes its job done, where both live
    in one file. With a queue of its own it becomes so right after, and a process that dies in
    between leaves it to the next pass, which looks up every pending record's job. Either way a
    record is sent at least once, and the receiver tells a repeat by its id.

    A record whose job is dead stays pending, and is sent again once the job is redriven. The
    queue is the outbox's own: a job without a record is quarantined. Several deliveries may run
    at once, each under an owner of its own.

    A job that somebody's own SQL has made so that no result of it could be recorded holds up no
    other: it is not sent, is told to `on_result` each time, and runs out of attempts.

    Args:
        con: a connection with no transaction open, on the database that holds the outbox.
        send: delivers a record, its own copy, outside every transaction. Returning exactly
            True settles its job, raising `Retryable` postpones it, raising `Permanent`
            quarantines it. Anything else leaves the lease to run out, and is reported.
        owner: identifier of this delivery.
        queue: a connection to the queue. None keeps the jobs beside the outbox, in tables that
            are created there if missing.
        until: `stopped` goes on for ever; `drained` ends when no job can run any more.
        stop: ends the run after the job in hand; None for never.
        ttl_ms: how long a record may be tried, milliseconds from 1.
        max_attempts: how often a record may be tried, from 1.
        lease_ms: longest lease, milliseconds from 1; longer than any send takes.
        base_ms: backoff after the first attempt, milliseconds from 1.
        cap_ms: longest backoff, milliseconds from `base_ms`.
        poll_ms: longest pause between two looks, milliseconds from 1.
        clock: returns the present, milliseconds since 1970, and never goes back; None for the
            wall clock.
        jitter: returns a share from 0 to 1, drawn anew for each backoff.
        give_up_after: end the run once so many records were refused for good, by `Permanent`, and
            none was accepted since its start; an int from 1, or None for never.
        on_result: told of each send once its result is recorded; what it raises ends the run.

    Returns:
        What became of the sends of this run.

    Raises:
        ValueError: an argument or a reading of the clock is unusable.
        Refused: the receiver refuses every record, as often as `give_up_after` says.
        UnusableFile: the outbox's file has jobs of its own; give a `queue`.
        sqlite3.Error: a database failed in another way than being locked.

    Hooks: none.
    """
    checks.identifier("owner", owner)
    checks.integer("ttl_ms", ttl_ms, 1, WIDE.max_ttl_ms)
    checks.integer("max_attempts", max_attempts, 1, WIDE.max_attempts)
    checks.integer("lease_ms", lease_ms, 1, WIDE.max_lease_ms)
    checks.integer("base_ms", base_ms, 1, WIDE.max_delay_ms)
    checks.integer("cap_ms", cap_ms, base_ms, WIDE.max_delay_ms)
    checks.integer("poll_ms", poll_ms, 1, WIDE.max_delay_ms)
    if give_up_after is not None:
        checks.integer("give_up_after", give_up_after, 1, CEILING)
    if queue is None:
        jobs.create_queue(con)
    clock = SteadyClock() if clock is None else clock

    def once(sending: Send, settling: Settling) -> Settled | None:
        return jobs.run_once(
            queue or con,
            owner,
            clock,
            sending,
            jitter(),
            lease_ms,
            base_ms=base_ms,
            cap_ms=cap_ms,
            effect=settling if queue in (None, con) else None,
        )

    feeder = Feeder(con, queue or con, clock, ttl_ms, max_attempts)
    breaker = Breaker(give_up_after)
    run = _Run(feeder, once, send, on_result, Stop() if stop is None else stop, breaker)
    run.run(until, poll_ms)
    return Tally(**run.tally)


class _Run:
    """One run of `deliver`: passes over the pending records, and jobs in between."""

    def __init__(
        self,
        feeder: Feeder,
        once: Callable[[Send, Settling], Settled | None],
        send: SendRecord,
        on_result: Callable[[Delivered], object],
        stop: Stopping,
        breaker: Breaker,
    ) -> None:
        self._feeder = feeder
        self._once = once
        # Jobs that end without a send say nothing of the receiver.
        self._send = breaker.listening(send)
        self._breaker = breaker
        self._on_result = on_result
        self._stop = stop
        self.tally: Counter[str] = Counter()

    def run(self, until: Until, poll_ms: int) -> None:
        """Pass over the records until told to stop, or, drained, until a pass finds nothing."""
        while not self._stop.is_set():
            try:
                is_busy = self._pass()
                due_in_ms = self._feeder.due_in_ms()
            except sqlite3.OperationalError as error:
                if not is_locked(error):
                    raise
                _log.warning("%s; waiting for it", error)
                is_busy, due_in_ms = False, poll_ms
            if is_busy:
                continue
            if due_in_ms is None and until == "drained":
                return
            pause_ms = poll_ms if due_in_ms is None else max(1, min(poll_ms, due_in_ms))
            self._stop.wait(pause_ms / 1000)

    def _pass(self) -> bool:
        """Look at every pending record, work on what is due; return whether there was anything."""
        is_busy = False
        for records in self._feeder.pages():
            is_busy |= self._feeder.feed(records)
            is_busy |= self._work()
            if self._stop.is_set():
                break
        # A job may be due although its record took effect by another way.
        return self._work() or is_busy

    def _work(self) -> bool:
        """Work on the jobs that are due, a page at most; return whether there were any."""
        for worked in range(PAGE):
            if self._stop.is_set():
                return worked > 0
            result = self._attempt()
            if result is None:
                return worked > 0
            self.tally[result.status] += 1
            self._on_result(result)
            if result.status == "done":
                self._feeder.reconcile(result.id)
            self._breaker.check()
        return True

    def _attempt(self) -> Delivered | None:
        attempt = _Attempt(self._feeder, self._send)
        try:
            settled = self._once(attempt, self._feeder.settle_job)
        except Exception as error:
            if attempt.record_id is None or not attempt.explains(error):
                raise
            return Delivered(attempt.record_id, "leased", error)
        if settled is None:
            return None
        return Delivered(settled["id"], settled["status"], attempt.error)


class _Attempt:
    """The send of one job: the record behind it goes out, unless it took effect already."""

    def __init__(self, feeder: Feeder, send: SendRecord) -> None:
        self._feeder = feeder
        self._send = send
        self.record_id: str | None = None
        self.error: Exception | None = None

    def __call__(self, event: Event) -> object:
        """Send, and remember what that raised."""
        self.record_id = event["id"]
        try:
            self._feeder.require_settleable(event)
            record = self._feeder.to_send(event["id"])
            return True if record is None else self._send(record)
        except Exception as error:
            self.error = error
            raise

    def explains(self, error: Exception) -> bool:
        """Tell an error of the send, or of a lock after it, from one that must end the run."""
        return error is self.error or isinstance(error, BadAck) or is_locked(error)
