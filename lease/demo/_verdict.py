"""Hold the evidence against the promise, one invariant at a time."""

from collections.abc import Iterator
from signal import SIGKILL
from typing import NamedTuple

from lease.demo._evidence import Evidence, JobEvidence


class Check(NamedTuple):
    """One invariant, and whether the evidence holds it."""

    text: str
    holds: bool


def judge(evidence: Evidence) -> list[Check]:
    """Return each invariant that the evidence can speak for."""
    checks = [*_in_the_queue(evidence)]
    if evidence.kill.committed is not None:
        checks += _at_the_receiver(evidence)
    return checks


def _in_the_queue(evidence: Evidence) -> Iterator[Check]:
    jobs, kill = evidence.jobs, evidence.kill
    recovered = _recovered(evidence)
    yield Check(
        f"the first dispatcher was killed with {kill.job} sent and not recorded",
        kill.code == -SIGKILL and kill.status == "leased",
    )
    yield Check(
        f"{kill.job} was taken over under a higher token and sent again",
        recovered is not None and recovered.token > kill.token and recovered.sends > 1,
    )
    yield Check("every job is done", bool(jobs) and all(job.status == "done" for job in jobs))
    yield Check("each claim was sent once", all(job.sends == job.token for job in jobs))


def _at_the_receiver(evidence: Evidence) -> Iterator[Check]:
    jobs, kill = evidence.jobs, evidence.kill
    recovered = _recovered(evidence)
    yield Check(f"the receiver had committed {kill.job} before the kill", bool(kill.committed))
    yield Check(
        f"{kill.job} was requested again and still has one effect",
        recovered is not None
        and (recovered.requests or 0) > 1
        and recovered.effects == (recovered.qty,),
    )
    yield Check(
        "each job has one inbox row, of its quantity", all(job.inbox == (job.qty,) for job in jobs)
    )
    yield Check(
        "each job has one effect, of its quantity", all(job.effects == (job.qty,) for job in jobs)
    )
    yield Check(
        "no job was requested more often than it was sent",
        all(1 <= (job.requests or 0) <= job.sends for job in jobs),
    )
    yield Check("the receiver holds nothing else", not evidence.strangers)


def _recovered(evidence: Evidence) -> JobEvidence | None:
    return next((job for job in evidence.jobs if job.id == evidence.kill.job), None)
