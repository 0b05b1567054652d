"""The lease queue as the contract tells it, in plain Python: no SQL, no clock, no connection.

A book is a value. Each verb takes a book and the arguments of the real verb, and returns what
the real verb returns, with the book as it stands afterwards. Where the real verb raises, the
model returns a `Raised` with the name of the exception.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Ticket = dict[str, Any]

#: A ticket, an outcome and a delay.
Result = tuple[Ticket, str, int]


class Job(NamedTuple):
    """One row of `jobs`, in the order of its columns."""

    seq: int
    id: str
    qty: int
    status: str
    attempts: int
    max_attempts: int
    token: int
    available_at: int
    deadline: int
    owner: str | None
    lease_until: int | None
    reason: str | None


class Audit(NamedTuple):
    """One row of `redrives`, in the order of its columns."""

    seq: int
    id: str
    token: int
    at_ms: int
    note: str


class Book(NamedTuple):
    """All rows of both tables, in the order of `seq`, and the last `seq` that a job was given."""

    jobs: tuple[Job, ...] = ()
    audits: tuple[Audit, ...] = ()
    last_seq: int = 0

    def find(self, job_id: str) -> Job | None:
        """Return the job of that id, or None."""
        return next((job for job in self.jobs if job.id == job_id), None)

    def put(self, new: Job) -> "Book":
        """Return the book with one job's row replaced."""
        return self._replace(jobs=tuple(new if job.seq == new.seq else job for job in self.jobs))


class Raised(NamedTuple):
    """The name of the exception that the real verb raises."""

    error: str


Answer = tuple[Any, Book]


def enqueue(
    book: Book, event: Mapping[str, Any], now_ms: int, ttl_ms: int, max_attempts: int = 3
) -> Answer:
    """Step 3: a known id keeps its row, whatever the budget that comes with it."""
    known = book.find(event["id"])
    if known:
        return (False if known.qty == event["qty"] else Raised("Conflict")), book
    job = Job(
        seq=book.last_seq + 1,
        id=event["id"],
        qty=event["qty"],
        status="pending",
        attempts=0,
        max_attempts=max_attempts,
        token=0,
        available_at=now_ms,
        deadline=now_ms + ttl_ms,
        owner=None,
        lease_until=None,
        reason=None,
    )
    return True, book._replace(jobs=(*book.jobs, job), last_seq=job.seq)


def claim(book: Book, owner: str, now_ms: int, lease_ms: int = 1000) -> Answer:
    """Step 4: bury what nobody holds and nobody may try again, then lease the oldest."""
    book = _bury(book, now_ms)
    for job in book.jobs:
        if free(job, now_ms) and (job.status == "leased" or job.available_at <= now_ms):
            taken = job._replace(
                status="leased",
                attempts=job.attempts + 1,
                token=job.token + 1,
                owner=owner,
                lease_until=min(now_ms + lease_ms, job.deadline),
                reason=None,
            )
            return ticket_of(taken), book.put(taken)
    return None, book


def finish(book: Book, ticket: Ticket, outcome: str, now_ms: int, delay_ms: int = 0) -> Answer:
    """Step 5: the whole ticket, before the end of the lease and of the job's time."""
    job = holding(book, ticket, now_ms)
    if job is None:
        return False, book
    status, reason = _verdict(job, outcome, now_ms + delay_ms)
    settled = job._replace(
        status=status,
        reason=reason,
        available_at=now_ms + delay_ms if status == "pending" else now_ms,
        owner=None,
        lease_until=None,
    )
    return status, book.put(settled)


def renew(book: Book, ticket: Ticket, now_ms: int, lease_ms: int) -> Answer:
    """A longer lease for the holder, to the deadline at most and never a shorter one."""
    job = holding(book, ticket, now_ms)
    if job is None:
        return None, book
    lease_until = max(ticket["lease_until"], min(now_ms + lease_ms, job.deadline))
    renewed = job._replace(lease_until=lease_until)
    return ticket_of(renewed), book.put(renewed)


def redrive(book: Book, job_id: str, now_ms: int, ttl_ms: int, note: str) -> Answer:
    """Step 6: a fresh budget for a dead job, its token kept, and one audit row."""
    job = book.find(job_id)
    if job is None or job.status != "dead":
        return Raised("ValueError"), book
    audit = Audit(len(book.audits) + 1, job_id, job.token, now_ms, note)
    revived = job._replace(
        status="pending",
        attempts=0,
        available_at=now_ms,
        deadline=now_ms + ttl_ms,
        owner=None,
        lease_until=None,
        reason=None,
    )
    return True, book.put(revived)._replace(audits=(*book.audits, audit))


def redrive_many(book: Book, job_ids: Sequence[str], now_ms: int, ttl_ms: int, note: str) -> Answer:
    """Do as one call of `redrive` after the other, and say of each other job what it is."""
    releases = []
    for job_id in job_ids:
        job = book.find(job_id)
        answer, book = redrive(book, job_id, now_ms, ttl_ms, note)
        releases.append("redriven" if answer is True else job.status if job else "missing")
    return releases, book


def enqueue_many(
    book: Book,
    events: Sequence[Mapping[str, Any]],
    now_ms: int,
    ttl_ms: int,
    max_attempts: int = 3,
) -> Answer:
    """Do as one call of `enqueue` after the other, and give each answer its name."""
    intakes = []
    for event in events:
        new, book = enqueue(book, event, now_ms, ttl_ms, max_attempts)
        intakes.append({True: "new", False: "duplicate", Raised("Conflict"): "conflict"}[new])
    return intakes, book


def claim_many(book: Book, owner: str, now_ms: int, max_jobs: int, lease_ms: int = 1000) -> Answer:
    """Do as one call of `claim` after the other, until one finds nothing."""
    tickets: list[Ticket] = []
    for _ in range(max_jobs):
        ticket, book = claim(book, owner, now_ms, lease_ms)
        if ticket is None:
            break
        tickets.append(ticket)
    return tickets, book


def finish_many(book: Book, results: Sequence[Result], now_ms: int) -> Answer:
    """Do as one call of `finish` after the other."""
    statuses = []
    for ticket, outcome, delay_ms in results:
        status, book = finish(book, ticket, outcome, now_ms, delay_ms)
        statuses.append(status)
    return statuses, book


def finish_and_claim(
    book: Book,
    results: Sequence[Result],
    owner: str,
    now_ms: int,
    max_jobs: int,
    lease_ms: int = 1000,
) -> Answer:
    """Do as `finish_many` and then `claim_many`."""
    statuses, book = finish_many(book, results, now_ms)
    tickets, book = claim_many(book, owner, now_ms, max_jobs, lease_ms)
    return (statuses, tickets), book


def ticket_of(job: Job) -> Ticket:
    """Return the ticket of a leased job."""
    return {
        "id": job.id,
        "qty": job.qty,
        "owner": job.owner,
        "token": job.token,
        "attempt": job.attempts,
        "lease_until": job.lease_until,
    }


def free(job: Job, now_ms: int) -> bool:
    """Tell whether the job still runs and nobody holds it; a lease ends at `lease_until`."""
    if job.status == "leased":
        return job.lease_until is not None and job.lease_until <= now_ms
    return job.status == "pending"


def holding(book: Book, ticket: Ticket, now_ms: int) -> Job | None:
    """Return the job that the ticket holds at that instant, or None."""
    job = book.find(ticket["id"])
    if job is None or job.status != "leased" or ticket != ticket_of(job):
        return None
    if now_ms >= min(ticket["lease_until"], job.deadline):
        return None
    return job


def _bury(book: Book, now_ms: int) -> Book:
    for job in book.jobs:
        late = job.deadline <= now_ms
        if free(job, now_ms) and (late or job.attempts >= job.max_attempts):
            reason = "deadline" if late else "exhausted"
            book = book.put(
                job._replace(status="dead", owner=None, lease_until=None, reason=reason)
            )
    return book


def _verdict(job: Job, outcome: str, again_ms: int) -> tuple[str, str | None]:
    if outcome == "ok":
        return "done", None
    if outcome == "permanent":
        return "dead", "permanent"
    if job.attempts >= job.max_attempts:
        return "dead", "exhausted"
    if again_ms >= job.deadline:
        return "dead", "deadline"
    return "pending", "retry"


#: The verbs by the names they have in `lease.jobs`.
VERBS: dict[str, Callable[..., Answer]] = {
    "claim": claim,
    "claim_many": claim_many,
    "enqueue": enqueue,
    "enqueue_many": enqueue_many,
    "finish": finish,
    "finish_and_claim": finish_and_claim,
    "finish_many": finish_many,
    "redrive": redrive,
    "redrive_many": redrive_many,
    "renew": renew,
}
