"""Claim, send, finish: one job, with the send outside every transaction."""

import sqlite3
from collections.abc import Callable
from functools import partial

from lease import checks
from lease.db.connection import StrPath
from lease.errors import BadAck, Permanent, Retryable
from lease.jobs._backoff import retry_delay
from lease.jobs._claim import claim
from lease.jobs._finish import finish
from lease.jobs._open import open_queue
from lease.limits import WIDE, Limits
from lease.model import Clock, Event, Outcome, Send, Settled


def run_once(
    con: sqlite3.Connection,
    owner: str,
    clock: Clock,
    send: Send,
    jitter: float,
    lease_ms: int = 1000,
    *,
    base_ms: int = 100,
    cap_ms: int = 1000,
    effect: Callable[[Event, str], object] | None = None,
    limits: Limits = WIDE,
) -> Settled | None:
    """Claim one job, send it once, and record what came of it.

    Args:
        con: a connection with no transaction open.
        owner: identifier of the worker.
        clock: returns the present in milliseconds; called before the claim and after the send.
        send: delivers a dict of `id` and `qty`, its own copy. Returning exactly True settles the
            job, raising `Retryable` postpones it, raising `Permanent` quarantines it.
        jitter: share of the backoff to wait before a retry, from 0 to 1.
        lease_ms: longest lease, milliseconds from 1.
        base_ms: backoff after the first attempt, milliseconds from 1.
        cap_ms: longest backoff, milliseconds from `base_ms`.
        effect: called with the event and the job's new status inside the transaction that
            records it; what it writes on the connection commits with it. None for none.
        limits: the upper bounds of the numbers.

    Returns:
        The job's id, its token and its new status, which is `stale` where the lease had ended
        or moved on; or None if no job was claimable, and then nothing was sent.

    Raises:
        ValueError: an argument or a reading of the clock is unusable, or the clock went
            backwards during the send; a claim that was made stays.
        BadAck: `send` returned anything but True; the lease stays until it ends.
        Exception: whatever else `send` raised, unchanged; the lease stays until it ends.

    Hooks: none.

    Source: contract, step 7.
    """
    checks.fraction("jitter", jitter)
    checks.integer("base_ms", base_ms, 1, limits.max_delay_ms)
    checks.integer("cap_ms", cap_ms, base_ms, limits.max_delay_ms)
    claimed_ms = clock()
    ticket = claim(con, owner, claimed_ms, lease_ms, limits=limits)
    if ticket is None:
        return None
    event = Event(id=ticket["id"], qty=ticket["qty"])
    outcome = _deliver(send, event.copy())
    finished_ms = checks.later(claimed_ms, clock(), limits)
    delay_ms = 0
    if outcome == "retry":
        delay_ms = retry_delay(ticket["attempt"], base_ms, cap_ms, jitter, limits=limits)
    settle = None if effect is None else partial(effect, event)
    status = finish(con, ticket, outcome, finished_ms, delay_ms, effect=settle, limits=limits)
    return Settled(id=ticket["id"], token=ticket["token"], status=status or "stale")


def run_file(
    path: StrPath,
    owner: str,
    clock: Clock,
    send: Send,
    jitter: float,
    lease_ms: int = 1000,
    *,
    base_ms: int = 100,
    cap_ms: int = 1000,
    limits: Limits = WIDE,
) -> Settled | None:
    """Open an existing queue file, `run_once` on it, and close it again on every path.

    Args:
        path: an existing ordinary file; a missing one is never created.
        owner, clock, send, jitter, lease_ms, base_ms, cap_ms, limits: as for `run_once`.

    Returns:
        What `run_once` returns.

    Raises:
        FileNotFoundError: no ordinary file is there.
        Exception: what `open_queue` and `run_once` raise.

    Hooks: none.

    Source: contract, step 8.
    """
    con = open_queue(path, create=False)
    try:
        return run_once(
            con,
            owner,
            clock,
            send,
            jitter,
            lease_ms,
            base_ms=base_ms,
            cap_ms=cap_ms,
            limits=limits,
        )
    finally:
        con.close()


def _deliver(send: Send, event: Event) -> Outcome:
    try:
        answer = send(event)
    except Retryable:
        return "retry"
    except Permanent:
        return "permanent"
    if answer is True:
        return "ok"
    raise BadAck(f"send returned {checks.shown(answer)}, not True; the lease stays until it ends")
