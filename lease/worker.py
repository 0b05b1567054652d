"""The contract's face: its names, its signatures, its bounds; each function is one general verb."""

import os
import sqlite3
from typing import Literal

from lease import jobs
from lease.errors import BadAck, Conflict, Permanent, Retryable
from lease.limits import CONTRACT
from lease.model import Clock, Event, Fault, Outcome, Send, Settled, Ticket

__all__ = [
    "BadAck",
    "Conflict",
    "Permanent",
    "Retryable",
    "claim",
    "enqueue",
    "finish",
    "open_queue",
    "redrive",
    "retry_delay",
    "run_file",
    "run_once",
]


def retry_delay(attempt: int, base_ms: int, cap_ms: int, jitter: float) -> int:
    """Return the capped exponential backoff of an attempt, scaled by the jitter (step 1).

    Args:
        attempt: the attempt that failed, 1-16.
        base_ms: delay after the first attempt, 1-60000 ms.
        cap_ms: longest delay, `base_ms`-60000 ms.
        jitter: share of the delay to wait, a finite int or float from 0 to 1.

    Returns:
        Whole milliseconds, rounded down.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
    """
    return jobs.retry_delay(attempt, base_ms, cap_ms, jitter, limits=CONTRACT)


def open_queue(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """Open a queue file, making its two tables if they are missing (step 2).

    Args:
        path: a local file; created if missing, never an in-memory database.

    Returns:
        A connection with `isolation_level=None`, a one-second lock wait, `journal_mode=DELETE`
        and `synchronous=FULL`; the caller closes it.

    Raises:
        ValueError: the path names no file.
        UnusableFile: the file belongs to something else or to a later version.
        sqlite3.Error: the file cannot be opened, is locked for too long, or is no database.
    """
    return jobs.open_queue(path)


def enqueue(
    con: sqlite3.Connection, event: Event, now_ms: int, ttl_ms: int, max_attempts: int = 3
) -> bool:
    """Record a new pending job, or recognise one that is already recorded (step 3).

    Args:
        con: a connection with no transaction open; it stays open.
        event: a dict of just `id` (identifier) and `qty` (1-1000); never changed.
        now_ms: the present, 0-(10**15 - 60000) ms.
        ttl_ms: time to live, 1-60000 ms.
        max_attempts: attempt budget, 1-16.

    Returns:
        True for a new job; False for the same id and quantity, whose row stays as it is.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.
        Conflict: the id is recorded with another quantity; nothing was changed.
    """
    return jobs.enqueue(con, event, now_ms, ttl_ms, max_attempts, limits=CONTRACT)


def claim(
    con: sqlite3.Connection,
    owner: str,
    now_ms: int,
    lease_ms: int = 1000,
    fault: Fault | None = None,
) -> Ticket | None:
    """Quarantine what has run out, then lease the oldest claimable job (step 4).

    Args:
        con: a connection with no transaction open; it stays open.
        owner: identifier of the worker.
        now_ms: the present, 0-(10**15 - 60000) ms.
        lease_ms: longest lease, 1-60000 ms; the job's deadline clips it.
        fault: hook, or None for none.

    Returns:
        The ticket: `id`, `qty`, `owner`, `token`, `attempt`, `lease_until`. None if no job is
        claimable; the quarantine is committed all the same. A job that `lease.jobs` took in with
        a budget above 16 may have an `attempt` above 16, which only `lease.jobs.finish` settles.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.

    Hooks: `after-claim` before COMMIT, `after-commit` after it; neither when None is returned.
    """
    return jobs.claim(con, owner, now_ms, lease_ms, fault, limits=CONTRACT)


def finish(
    con: sqlite3.Connection,
    ticket: Ticket,
    outcome: Outcome,
    now_ms: int,
    delay_ms: int = 0,
    fault: Fault | None = None,
) -> str | Literal[False]:
    """Settle a job for the holder of its current ticket (step 5).

    Args:
        con: a connection with no transaction open; it stays open.
        ticket: what `claim` returned, unchanged; never changed here. Its `attempt` is 1-16.
        outcome: `ok`, `retry` or `permanent`.
        now_ms: the present, 0-(10**15 - 60000) ms.
        delay_ms: wait before the next attempt, 0-60000 ms; used by `retry` alone.
        fault: hook, or None for none.

    Returns:
        The new status, `done`, `dead` or `pending`; False for a stale ticket, which changes
        nothing.

    Raises:
        ValueError: an argument is not of its exact type or out of range; nothing was changed.

    Hooks: `after-finish` before COMMIT, `after-commit` after it; neither when False is returned.
    """
    return jobs.finish(con, ticket, outcome, now_ms, delay_ms, fault, limits=CONTRACT)


def redrive(
    con: sqlite3.Connection,
    job_id: str,
    now_ms: int,
    ttl_ms: int,
    note: str,
    fault: Fault | None = None,
) -> Literal[True]:
    """Release a dead job with a fresh budget and write its audit row (step 6).

    Args:
        con: a connection with no transaction open; it stays open.
        job_id: identifier of a dead job.
        now_ms: the present, 0-(10**15 - 60000) ms.
        ttl_ms: new time to live, 1-60000 ms.
        note: identifier that states the reason.
        fault: hook, or None for none.

    Returns:
        True; quantity, attempt budget and token are kept.

    Raises:
        ValueError: an argument is not of its exact type or out of range, or the job does not
            exist or is not dead; nothing was changed.

    Hooks: `after-audit` and `after-redrive` before COMMIT, `after-commit` after it.
    """
    return jobs.redrive(con, job_id, now_ms, ttl_ms, note, fault, limits=CONTRACT)


def run_once(
    con: sqlite3.Connection,
    owner: str,
    clock: Clock,
    send: Send,
    jitter: float,
    lease_ms: int = 1000,
) -> Settled | None:
    """Claim one job, send it outside any transaction, and settle it (step 7).

    A retry waits for `retry_delay(attempt, 100, 1000, jitter)`.

    Args:
        con: a connection with no transaction open; it stays open.
        owner: identifier of the worker.
        clock: returns the present, 0-(10**15 - 60000) ms; called before the claim and after
            a send that returned or raised `Retryable` or `Permanent`.
        send: gets its own dict of just `id` and `qty`, once; exactly True acknowledges.
        jitter: share of the backoff to wait, a finite int or float from 0 to 1.
        lease_ms: longest lease, 1-60000 ms.

    Returns:
        A dict of `id`, `token` and `status` (the new status, or `stale`); None if no job was
        claimable, and then nothing was sent.

    Raises:
        ValueError: an argument or a reading of the clock is unusable, or the clock went
            backwards; a claim that was made stays.
        BadAck: `send` returned anything but True; the job stays leased.
        Exception: whatever else `send` raised, unchanged; the job stays leased.
    """
    return jobs.run_once(con, owner, clock, send, jitter, lease_ms, limits=CONTRACT)


def run_file(
    path: str | os.PathLike[str],
    owner: str,
    clock: Clock,
    send: Send,
    jitter: float,
    lease_ms: int = 1000,
) -> Settled | None:
    """Open an existing queue file, `run_once` on it, and close it again (step 8).

    The gap between the receiver's effect and the queue's record stays open: a worker that dies
    in it is recovered from by sending again, which the receiver must recognise.

    Args:
        path: an existing ordinary file; a missing one is never created.
        owner, clock, send, jitter, lease_ms: as for `run_once`.

    Returns:
        What `run_once` returns.

    Raises:
        FileNotFoundError: no ordinary file is there.
        Exception: what `open_queue` and `run_once` raise; the connection is closed first.
    """
    return jobs.run_file(path, owner, clock, send, jitter, lease_ms, limits=CONTRACT)
