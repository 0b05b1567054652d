"""Keep an outbox and a queue in step: a job for each pending record, a mark for each done job."""

import logging
import sqlite3
from collections.abc import Iterator

from lease import checks, jobs
from lease.db.transaction import write_transaction
from lease.errors import Permanent
from lease.limits import CEILING, WIDE
from lease.model import Clock, Event
from lease.outbox._find import find, recorded_at
from lease.outbox._job import Job, event_of, job_of
from lease.outbox._pending import pages
from lease.outbox._settle import settle
from lease.outbox._time import iso
from lease.outbox.model import Record

# Between so many records and as many jobs: neither keeps the other waiting.
PAGE = 100

_log = logging.getLogger("lease.outbox")


class Feeder:
    """Knows both sides, which may be one connection; each step is safe to repeat.

    Args:
        con: a connection to the database that holds the outbox.
        queue: a connection to the one that holds the jobs.
        clock: returns the present in milliseconds.
        ttl_ms: time to live of a job, milliseconds.
        max_attempts: attempt budget of a job.
    """

    def __init__(
        self,
        con: sqlite3.Connection,
        queue: sqlite3.Connection,
        clock: Clock,
        ttl_ms: int,
        max_attempts: int,
    ) -> None:
        self._con = con
        self._queue = queue
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._max_attempts = max_attempts
        self._reported: set[str] = set()

    def pages(self) -> Iterator[list[Record]]:
        """Yield the pending records page by page."""
        return pages(self._con, PAGE)

    def feed(self, records: list[Record]) -> bool:
        """Match each pending record with its job; return whether anything was changed."""
        without_job = []
        changed = 0
        for record in records:
            job = job_of(self._queue, record["id"])
            if job is None:
                without_job.append(record)
            elif not job.is_ours:
                self._report(record["id"])
            elif job.status == "done":
                changed += self._catch_up(record["id"], job)
        return self._enqueue(without_job) + changed > 0

    def _catch_up(self, record_id: str, job: Job) -> bool:
        """Mark a record whose job is done, unless the job was done for something else.

        In one file the two are one commit, so that a job that is done leaves no record of its
        own pending; and no job is done before its record was made. Such a job is somebody
        else's, or that of a record of the same id that was pruned.
        """
        since = recorded_at(self._con, record_id)
        if since is None:
            return False
        if self._queue is self._con or iso("available_at", job.since_ms) < since:
            self._report(record_id)
            return False
        return self.reconcile(record_id)

    def reconcile(self, record_id: str) -> bool:
        """Mark a pending record as processed, since its job is done; False if it is not pending."""
        found = find(self._con, record_id)
        if found is None or found[1] == "processed":
            return False
        processed_at = iso("clock()", self._clock())
        with write_transaction(self._con):
            return settle(self._con, found[0], processed_at)

    def settle_job(self, event: Event, status: str) -> None:
        """Mark the record of a job that becomes done, inside the transaction that makes it so."""
        found = find(self._con, event["id"])
        if status == "done" and found is not None:
            settle(self._con, found[0], iso("clock()", self._clock()))

    def require_settleable(self, event: Event) -> None:
        """Refuse a claimed job of which no result could be recorded, before it is sent.

        Raises:
            ValueError: somebody's own SQL has made it so.
        """
        checks.event(event)
        job = job_of(self._queue, event["id"])
        if job is not None:
            checks.integer("token", job.token, 1, CEILING)
            checks.integer("attempt", job.attempts, 1, WIDE.max_attempts)

    def to_send(self, record_id: str) -> Record | None:
        """Return the record behind a job, or None if it took effect already.

        Raises:
            Permanent: there is no such record.
        """
        found = find(self._con, record_id)
        if found is None:
            raise Permanent(f"the outbox has no record {record_id}")
        record, state = found
        return record if state == "pending" else None

    def due_in_ms(self) -> int | None:
        """Return how long until the next job is due, below 0 if it is; None if none can be."""
        due_ms = jobs.next_due(self._queue)
        return None if due_ms is None else due_ms - self._clock()

    def _enqueue(self, records: list[Record]) -> int:
        """Take in a job for each record, all in one transaction; return how many are new."""
        if not records:
            return 0
        intakes = jobs.enqueue_many(
            self._queue,
            [event_of(record) for record in records],
            self._clock(),
            self._ttl_ms,
            self._max_attempts,
        )
        for record, intake in zip(records, intakes, strict=True):
            if intake == "conflict":
                self._report(record["id"])
        return intakes.count("new")

    def _report(self, record_id: str) -> None:
        if record_id not in self._reported:
            self._reported.add(record_id)
            _log.warning(
                "the queue has another job of the id %s; the record stays pending: "
                "record it under another id",
                record_id,
            )
