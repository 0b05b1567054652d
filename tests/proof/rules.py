"""What must hold of every step that a verb takes, told of the rows before and after it.

Each rule but the last is read off the rows alone and knows nothing of how a verb decides; the
last compares with the model, which is a second reading of the contract.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.proof.steps import Step
from tests.support.model import Book, Job, Raised, free, holding

Change = tuple[Job, Job]


class Violation(AssertionError):
    """A step broke a rule."""

    def __init__(self, rule: str, step: Step, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.step = step


class Taken(NamedTuple):
    """One step that was taken: its answer, the rows before and after, and the model's word."""

    step: Step
    before: Book
    answer: Any
    after: Book
    expected: tuple[Any, Book]

    def changes(self) -> Iterator[Change]:
        """Yield the row before and after of each job that the step changed."""
        for old, new in zip(self.before.jobs, self.after.jobs, strict=False):
            if old != new:
                yield old, new


REASONS: dict[str, set[str | None]] = {
    "pending": {None, "retry"},
    "leased": {None},
    "done": {None},
    "dead": {"deadline", "exhausted", "permanent"},
}

_CLAIMED = {("pending", "leased"), ("leased", "leased"), ("pending", "dead"), ("leased", "dead")}
_FINISHED = {("leased", "done"), ("leased", "pending"), ("leased", "dead")}

# The diagram. `finish_and_claim` is not here: one job may follow two arrows in one call.
ARROWS: dict[str, set[tuple[str, str]]] = {
    "claim": _CLAIMED,
    "claim_many": _CLAIMED,
    "enqueue": set(),
    "enqueue_many": set(),
    "finish": _FINISHED,
    "finish_many": _FINISHED,
    "redrive": {("dead", "pending")},
    "redrive_many": {("dead", "pending")},
    "renew": {("leased", "leased")},
}

_CLAIMS = {"claim", "claim_many"}
_HOLDERS = {"finish", "finish_many", "renew"}
_REDRIVES = {"redrive", "redrive_many"}


def one_state(taken: Taken) -> bool:
    """Each job is in exactly one state, with the fields of that state, by an arrow of the verb."""
    arrows = ARROWS.get(taken.step.verb)
    return all(_well_formed(job) for job in taken.after.jobs) and (
        arrows is None or all((old.status, new.status) in arrows for old, new in taken.changes())
    )


def _well_formed(job: Job) -> bool:
    if job.reason not in REASONS[job.status]:
        return False
    if job.status != "leased":
        return job.owner is None and job.lease_until is None
    return job.owner is not None and job.lease_until is not None and job.lease_until <= job.deadline


def no_job_lost(taken: Taken) -> bool:
    """No job disappears, and what was taken in stays: id, quantity and budget."""
    before, after = taken.before.jobs, taken.after.jobs
    kept = [(job.seq, job.id, job.qty, job.max_attempts) for job in before]
    still = [(job.seq, job.id, job.qty, job.max_attempts) for job in after[: len(before)]]
    return kept == still and (len(before) == len(after) or "enqueue" in taken.step.verb)


def token_rises(taken: Taken) -> bool:
    """A token never falls and never repeats: a claim adds one, nothing else moves it."""
    for old, new in taken.changes():
        claimed = taken.step.verb in _CLAIMS and new.status == "leased"
        if taken.step.verb in ARROWS and new.token != old.token + claimed:
            return False
        if new.token < old.token:
            return False
    return all(job.token == 0 for job in taken.after.jobs[len(taken.before.jobs) :])


def only_the_holder(taken: Taken) -> bool:
    """An outcome, or a longer lease, is for the current ticket before lease end and deadline."""
    if taken.step.verb not in _HOLDERS:
        return True
    arguments = taken.step.arguments
    tickets = (
        [arguments["ticket"]]
        if "ticket" in arguments
        else [ticket for ticket, _, _ in arguments["results"]]
    )
    held = [holding(taken.before, ticket, arguments["now_ms"]) for ticket in tickets]
    return all(old in held for old, _ in taken.changes())


def lease_is_exclusive(taken: Taken) -> bool:
    """A job under a lease that runs is neither handed out again nor buried."""
    if taken.step.verb not in _CLAIMS:
        return True
    return all(free(old, taken.step.arguments["now_ms"]) for old, _ in taken.changes())


def lease_is_kept(taken: Taken) -> bool:
    """A renewal never shortens a lease."""
    if taken.step.verb != "renew":
        return True
    return all((new.lease_until or 0) > (old.lease_until or 0) for old, new in taken.changes())


def within_budget(taken: Taken) -> bool:
    """The attempts never pass the budget; a claim adds one, a redrive alone takes them back."""
    if not all(0 <= job.attempts <= job.max_attempts for job in taken.after.jobs):
        return False
    if taken.step.verb not in ARROWS:
        return True
    for old, new in taken.changes():
        claimed = taken.step.verb in _CLAIMS and new.status == "leased"
        counted = 0 if taken.step.verb in _REDRIVES else old.attempts + claimed
        if new.attempts != counted:
            return False
    return True


def one_audit_row(taken: Taken) -> bool:
    """Every redrive leaves exactly one audit row, which names the token; nothing else does."""
    before, after = taken.before.audits, taken.after.audits
    added = after[len(before) :]
    if after[: len(before)] != before:
        return False
    if taken.step.verb not in _REDRIVES or isinstance(taken.answer, Raised):
        return not added
    arguments = taken.step.arguments
    wanted = arguments.get("job_ids") or [arguments["job_id"]]
    revived = [old.id for old, _ in taken.changes()]
    told = [
        (job.id, job.token, arguments["now_ms"], arguments["note"])
        for job in map(taken.before.find, dict.fromkeys(wanted))
        if job is not None and job.id in revived
    ]
    return [(audit.id, audit.token, audit.at_ms, audit.note) for audit in added] == told


def done_is_final(taken: Taken) -> bool:
    """A done job never runs again; its row never changes."""
    return not any(old.status == "done" for old, _ in taken.changes())


def reason_is_true(taken: Taken) -> bool:
    """A job is buried for what is so: its time is over, or its attempts are used up."""
    if taken.step.verb not in _CLAIMS:
        return True
    now_ms = taken.step.arguments["now_ms"]
    for old, new in taken.changes():
        if new.status == "dead":
            late, used = old.deadline <= now_ms, old.attempts >= old.max_attempts
            if not (late or used) or new.reason != ("deadline" if late else "exhausted"):
                return False
    return True


def nothing_left_lying(taken: Taken) -> bool:
    """A claim takes the oldest job that is ready at that instant, and buries all that are over."""
    if taken.step.verb not in _CLAIMS:
        return True
    now_ms = taken.step.arguments["now_ms"]
    over = [
        job.seq
        for job in taken.before.jobs
        if free(job, now_ms) and (job.deadline <= now_ms or job.attempts >= job.max_attempts)
    ]
    ready = [
        job.seq
        for job in taken.before.jobs
        if job.seq not in over
        and free(job, now_ms)
        and (job.status == "leased" or job.available_at <= now_ms)
    ]
    leased = [new.seq for _, new in taken.changes() if new.status == "leased"]
    buried = [new.seq for _, new in taken.changes() if new.status == "dead"]
    most = taken.step.arguments.get("max_jobs", 1)
    return leased == ready[:most] and buried == over


def refusal_changes_nothing(taken: Taken) -> bool:
    """A refused step, and a repeated intake, leave every row as it was."""
    refused = taken.answer is False or isinstance(taken.answer, Raised)
    return not refused or taken.before == taken.after


def as_the_contract_says(taken: Taken) -> bool:
    """The answer and every field of every row are those of the model."""
    return (taken.answer, taken.after) == taken.expected


#: In the order in which they are tried.
RULES: tuple[Callable[[Taken], bool], ...] = (
    no_job_lost,
    done_is_final,
    token_rises,
    only_the_holder,
    lease_is_exclusive,
    lease_is_kept,
    one_audit_row,
    within_budget,
    reason_is_true,
    nothing_left_lying,
    refusal_changes_nothing,
    one_state,
    as_the_contract_says,
)


def check(taken: Taken) -> None:
    """Try every rule on a step.

    Raises:
        Violation: the first rule that does not hold.
    """
    for rule in RULES:
        if not rule(taken):
            raise Violation(
                rule.__name__,
                taken.step,
                f"it answered {taken.answer!r}\n  before {taken.before}\n  after {taken.after}\n"
                f"  the model says {taken.expected[0]!r}\n  {taken.expected[1]}",
            )
