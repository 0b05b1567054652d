"""Judges: what was promised, held against what the two databases and the children's notes say."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from lease.clock import wall_ms
from lease.jobs import Stats
from tests.support.torture import SKEW_MS

Job = dict[str, Any]

_STATES = ("pending", "leased", "done", "dead")
_REASONS = ("deadline", "exhausted", "permanent")

#: Kinds of jobs that have time and attempts for whatever happens, and are at odds with nothing.
_LASTING = ("plain", "file")

#: What no job ever takes back.
_GROWING = ("jobs", "done", "claims", "redrives")


class Audit(NamedTuple):
    """One row of the redrives."""

    seq: int
    id: str
    token: int
    note: str


class Batch(NamedTuple):
    """What a bulk redrive was to release, and what it was told unless it was killed before.

    Before it was read that these are dead, there were so many audit rows.
    """

    walk: str
    note: str
    before: int
    ids: list[str]
    releases: list[str] | None


def batches_of(notes: list[Any]) -> list[Batch]:
    """Read the notes of one bulk redrive: of each batch what it is, and then what became of it."""
    return [
        Batch(**plan, releases=releases) for plan, releases in zip_longest(notes[::2], notes[1::2])
    ]


def wrong_with_job(job: Job, effects: Counter[tuple[str, int]]) -> list[str]:
    """Hold one job against the promise: done with its effect, or dead for a reason that is true."""
    kind = job["id"].partition("-")[0]
    faults = []
    if job["status"] == "done":
        if effects[job["id"], job["qty"]] != 1:
            faults.append("done without its effect")
        if kind == "odd":
            faults.append("done, although it is at odds")
        if job["reason"] is not None:
            faults.append("done with a reason")
    elif job["status"] == "dead":
        true = {
            "deadline": job["deadline"] <= wall_ms() + SKEW_MS + 1000,
            "exhausted": job["attempts"] >= job["max_attempts"],
            "permanent": kind == "odd",
        }
        if not true.get(job["reason"]):
            faults.append("dead for a reason that is none")
        if kind in _LASTING:
            faults.append("dead, although it had time and attempts")
    else:
        faults.append("left behind")
    if job["owner"] is not None or job["lease_until"] is not None:
        faults.append("still somebody's")
    if not 0 <= job["attempts"] <= min(job["max_attempts"], job["token"]):
        faults.append("with impossible counts")
    return [f"{fault}: {job}" for fault in faults]


def wrong_with_audits(audits: Sequence[Audit], found: list[Job]) -> list[str]:
    """Hold every release against its audit row: each has one, and each is at a token of its own."""
    tokens = {job["id"]: job["token"] for job in found}
    last: dict[str, int] = {}
    faults = []
    for audit in audits:
        if not last.get(audit.id, -1) < audit.token <= tokens[audit.id]:
            faults.append(f"{audit.id} was redriven at token {audit.token}, twice or too early")
        if audit.id.partition("-")[0] in _LASTING:
            faults.append(f"{audit.id} had been dead, although it had time and attempts")
        last[audit.id] = audit.token
    # Every claim adds one to both, and a release alone takes the attempts back.
    return faults + [
        f"released without an audit row, or the other way round: {job}"
        for job in found
        if job["attempts"] != job["token"] - last.get(job["id"], 0)
    ]


def wrong_with_batches(
    batches: list[Batch], audits: Sequence[Audit], found: list[Job]
) -> list[str]:
    """Hold bulk redrives against their audit rows: whole batches, as told, each job once a walk."""
    seqs = {job["id"]: job["seq"] for job in found}
    reached: dict[str, int] = {}
    faults = []
    for batch in batches:
        path = [reached.get(batch.walk, 0), *(seqs.get(each, 0) for each in batch.ids)]
        if any(here >= there for here, there in pairwise(path)):
            faults.append(f"a walk turned back: {batch}")
        reached[batch.walk] = path[-1]
        released = [audit for audit in audits if audit.note == batch.note]
        told = batch.releases
        if told is not None and [audit.id for audit in released] != [
            job_id for job_id, release in zip(batch.ids, told, strict=True) if release == "redriven"
        ]:
            faults.append(f"audit rows other than what was told: {batch}")
        if released:
            # Whoever was dead when read and not when it was released, another has released.
            others = {a.id for a in audits if batch.before < a.seq < released[0].seq}
            if lost := set(batch.ids) - {audit.id for audit in released} - others:
                faults.append(f"a part of a batch was not released, {sorted(lost)}: {batch}")
    return faults


def wrong_with_looks(looks: list[Stats]) -> list[str]:
    """Hold stats, in the order in which they were told, against themselves and those before."""
    faults = []
    for look in looks:
        if look["jobs"] != sum(look[state] for state in _STATES):  # type: ignore[literal-required]
            faults.append(f"states that do not add up to the jobs: {look}")
        if look["dead"] != sum(look["dead_reasons"].values()):  # type: ignore[arg-type]
            faults.append(f"reasons that do not add up to the dead: {look}")
        if look["claims"] < look["leased"] + look["done"]:
            faults.append(f"fewer claims than jobs that must have had one: {look}")
    for before, after in pairwise(looks):
        faults += [
            f"{name} fell: {before}, then {after}"
            for name in _GROWING
            if after[name] < before[name]  # type: ignore[literal-required]
        ]
    return faults


def counted(found: list[Job], audits: Sequence[Audit]) -> Stats:
    """Count one by one what stats must tell of a queue in which nothing is left to do."""
    states = Counter(job["status"] for job in found)
    reasons = Counter(job["reason"] for job in found if job["status"] == "dead")
    return Stats(  # type: ignore[typeddict-item]  # the names are those of the keys
        jobs=len(found),
        **{state: states[state] for state in _STATES},
        dead_reasons={reason: reasons[reason] for reason in _REASONS},
        claims=sum(job["token"] for job in found),
        redrives=len(audits),
        next_due_ms=None,
    )


def wrong_with_file(con: sqlite3.Connection, journal_mode: str) -> list[str]:
    """Hold a file against the integrity and the journal that it had at first."""
    lines = [str(row[0]) for row in con.execute("PRAGMA integrity_check")]
    (mode,) = con.execute("PRAGMA journal_mode").fetchone()
    faults = [line for line in lines if line != "ok"]
    return faults if mode == journal_mode else [*faults, f"the journal became {mode}"]
