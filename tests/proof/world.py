"""The small world: its jobs, workers, budgets and clock, and the steps that each state offers."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.proof.steps import FIELDS, Step
from tests.support.model import Book, Ticket

#: The tickets that workers hold, as tuples of their fields, oldest token first.
Held = tuple[tuple[Any, ...], ...]


class Intake(NamedTuple):
    """A job as its application sends it in."""

    id: str
    qty: int
    ttl_ms: int
    max_attempts: int


class World(NamedTuple):
    """Everything that can happen, kept small; times in milliseconds."""

    jobs: tuple[Intake, ...] = (Intake("j1", 1, 4, 2), Intake("j2", 2, 3, 1))
    owners: tuple[str, ...] = ("a", "b")
    lease_ms: int = 2
    delay_ms: int = 1
    redrive_ttl_ms: int = 2
    last_ms: int = 6
    jump_ms: int = 3
    most_redrives: int = 2
    kept_tickets: int = 2
    batches: bool = True

    def clock(self, now_ms: int) -> Iterator[tuple[str, int]]:
        """Yield the clock's next readings: a tick, and a jump back."""
        if now_ms < self.last_ms:
            yield "the clock ticks", now_ms + 1
        if now_ms > 0:
            yield "the clock jumps back", max(0, now_ms - self.jump_ms)

    def deaths(self, held: Held) -> Iterator[tuple[str, Held]]:
        """Yield each worker that holds a ticket, and what is held once it is dead."""
        for owner in self.owners:
            left = tuple(ticket for ticket in held if ticket[2] != owner)
            if left != held:
                yield owner, left

    def steps(self, book: Book, now_ms: int) -> Iterator[Step]:
        """Yield the steps that need no ticket."""
        for job in self.jobs:
            yield from self._intakes(book, job, now_ms)
        for owner in self.owners:
            yield Step("claim", {"owner": owner, "now_ms": now_ms, "lease_ms": self.lease_ms})
        if self.batches:
            yield from self._batches(book, now_ms)
        if len(book.audits) < self.most_redrives:
            for job in self.jobs:
                arguments = {"job_id": job.id, "now_ms": now_ms, "ttl_ms": self.redrive_ttl_ms}
                yield Step("redrive", {**arguments, "note": "again"})

    def _batches(self, book: Book, now_ms: int) -> Iterator[Step]:
        claim = {"owner": self.owners[0], "now_ms": now_ms, "lease_ms": self.lease_ms}
        yield Step("claim_many", {**claim, "max_jobs": len(self.jobs)})
        events = [{"id": job.id, "qty": job.qty} for job in self.jobs]
        # The last one again with another quantity: a conflict with one of its own batch.
        events.append({"id": self.jobs[-1].id, "qty": self.jobs[-1].qty + 1})
        budget = {"ttl_ms": self.jobs[0].ttl_ms, "max_attempts": self.jobs[0].max_attempts}
        yield Step("enqueue_many", {"events": events, "now_ms": now_ms, **budget})
        if len(book.audits) + len(self.jobs) <= self.most_redrives:
            ids = [job.id for job in reversed(self.jobs)]
            revival = {"now_ms": now_ms, "ttl_ms": self.redrive_ttl_ms, "note": "again"}
            yield Step("redrive_many", {"job_ids": [*ids, ids[0]], **revival})

    def _intakes(self, book: Book, job: Intake, now_ms: int) -> Iterator[Step]:
        event = {"id": job.id, "qty": job.qty}
        budget = {"now_ms": now_ms, "ttl_ms": job.ttl_ms, "max_attempts": job.max_attempts}
        yield Step("enqueue", {"event": event, **budget})
        if book.find(job.id):
            budget = {"now_ms": now_ms, "ttl_ms": job.ttl_ms + 1, "max_attempts": 9}
            yield Step("enqueue", {"event": event, **budget})
            yield Step("enqueue", {"event": {"id": job.id, "qty": job.qty + 1}, **budget})

    def steps_with(self, ticket: Ticket, now_ms: int) -> Iterator[Step]:
        """Yield the steps that a worker may take with a ticket that it was given once."""
        for outcome in ("ok", "retry", "permanent"):
            yield _finish(ticket, outcome, now_ms, 0)
        yield _finish(ticket, "retry", now_ms, self.delay_ms)
        yield Step("renew", {"ticket": ticket, "now_ms": now_ms, "lease_ms": self.lease_ms})
        if self.batches:
            claim = {"owner": ticket["owner"], "now_ms": now_ms, "lease_ms": self.lease_ms}
            for outcome in ("ok", "retry"):
                results = [(ticket, outcome, 0)]
                yield Step("finish_and_claim", {"results": results, **claim, "max_jobs": 1})

    def steps_together(self, tickets: tuple[Ticket, ...], now_ms: int) -> Iterator[Step]:
        """Yield the steps of a worker that reports on several jobs, on the first one twice."""
        if self.batches:
            reports = zip((*tickets, tickets[0]), ("ok", "retry", "permanent"), strict=True)
            results = [(ticket, outcome, 0) for ticket, outcome in reports]
            yield Step("finish_many", {"results": results, "now_ms": now_ms})


def _finish(ticket: Ticket, outcome: str, now_ms: int, delay_ms: int) -> Step:
    return Step(
        "finish",
        {"ticket": ticket, "outcome": outcome, "now_ms": now_ms, "delay_ms": delay_ms},
    )


def forgeries(step: Step) -> Iterator[Step]:
    """Yield a ticket's step with one field of it altered: nobody was given such a ticket."""
    ticket = step.arguments.get("ticket")
    if ticket is None:
        return
    altered: dict[str, Any] = {
        "qty": ticket["qty"] + 1,
        "owner": f"{ticket['owner']}x",
        "token": ticket["token"] + 1,
        "attempt": ticket["attempt"] + 1,
        "lease_until": ticket["lease_until"] + 1,
    }
    for field, value in altered.items():
        yield step._replace(arguments={**step.arguments, "ticket": {**ticket, field: value}})


def ticket_from(fields: tuple[Any, ...]) -> Ticket:
    """Return the ticket of those fields."""
    return dict(zip(FIELDS, fields, strict=True))


def keep(held: Held, new: Held, most: int) -> Held:
    """Add tickets to those held; of one job the workers keep that many, the newest."""
    kept: list[tuple[Any, ...]] = []
    for ticket in sorted({*held, *new}, key=lambda each: (each[0], -each[3], -each[5])):
        if sum(each[0] == ticket[0] for each in kept) < most:
            kept.append(ticket)
    return tuple(kept)
