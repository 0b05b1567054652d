"""What the two databases say in the end, job by job."""

from collections import Counter, defaultdict
from contextlib import closing
from typing import NamedTuple

from lease import jobs
from lease.db.statements import statement
from lease.inbox import open_inbox

DEMO_INBOX = statement("demo_inbox")
DEMO_EFFECTS = statement("demo_effects")


class JobEvidence(NamedTuple):
    """One job as the queue, the dispatchers and the receiver know it.

    Args:
        id: identifier of the job.
        qty: its quantity.
        status: its state in the queue.
        token: its token, the number of its claims.
        sends: how often the dispatchers said that they sent it.
        requests: how often the receiver counted it; None where the inbox cannot be seen, and so
            for the two that follow.
        inbox: the quantity of each inbox row of this id.
        effects: the quantity of each effect of this id.
    """

    id: str
    qty: int
    status: str
    token: int
    sends: int
    requests: int | None
    inbox: tuple[int, ...] | None
    effects: tuple[int, ...] | None


class Kill(NamedTuple):
    """How the first dispatcher died.

    Args:
        job: the job that it had sent and not recorded.
        code: the code that its process ended with, negative for a signal.
        status: the state of the job in the queue after the death.
        token: the token of the job after the death.
        committed: whether the inbox held the job before the kill; None where it cannot be seen.
    """

    job: str
    code: int
    status: str
    token: int
    committed: bool | None


class Evidence(NamedTuple):
    """All that the verdict rests on.

    Args:
        jobs: every job of the queue, in the order of intake.
        kill: the death in the gap.
        strangers: ids that the receiver holds and the queue does not.
    """

    jobs: list[JobEvidence]
    kill: Kill
    strangers: list[str]


class Inbox(NamedTuple):
    """What a receiver's database holds, by id."""

    requests: Counter[str]
    rows: dict[str, tuple[int, ...]]
    effects: dict[str, tuple[int, ...]]


def read_evidence(queue: str, inbox: str | None, sends: Counter[str], kill: Kill) -> Evidence:
    """Read both databases; None for an inbox that cannot be seen."""
    with closing(jobs.open_queue(queue, create=False)) as con:
        listed = jobs.list_jobs(con)
    if inbox is None:
        unseen = [_job(job, sends) for job in listed]
        return Evidence(unseen, kill, [])
    held = read_inbox(inbox)
    seen = [
        _job(job, sends)._replace(
            requests=held.requests[job["id"]],
            inbox=held.rows.get(job["id"], ()),
            effects=held.effects.get(job["id"], ()),
        )
        for job in listed
    ]
    strangers = {*held.rows, *held.effects}.difference(job["id"] for job in listed)
    return Evidence(seen, kill, sorted(strangers))


def read_inbox(path: str) -> Inbox:
    """Read what a receiver's database holds."""
    requests: Counter[str] = Counter()
    rows: defaultdict[str, tuple[int, ...]] = defaultdict(tuple)
    effects: defaultdict[str, tuple[int, ...]] = defaultdict(tuple)
    with closing(open_inbox(path, create=False)) as con:
        for event_id, qty, asked in DEMO_INBOX.many(con):
            requests[event_id] += asked
            rows[event_id] += (qty,)
        for event_id, qty in DEMO_EFFECTS.many(con):
            effects[event_id] += (qty,)
    return Inbox(requests, rows, effects)


def _job(job: jobs.Job, sends: Counter[str]) -> JobEvidence:
    return JobEvidence(
        id=job["id"],
        qty=job["qty"],
        status=job["status"],
        token=job["token"],
        sends=sends[job["id"]],
        requests=None,
        inbox=None,
        effects=None,
    )
