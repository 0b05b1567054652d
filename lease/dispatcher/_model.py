"""What a dispatcher is asked for, and what it tells."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from lease.db.connection import StrPath
from lease.limits import Limits
from lease.model import Clock, Send

#: When a run ends by itself: never, when no job is pending or leased, or after one claim.
Until = Literal["stopped", "drained", "once"]

#: Most sends of one worker at a time; beyond it their threads only get in each other's way.
MAX_CONCURRENCY = 1000

#: Longest wait for further results to record along with the first, milliseconds.
MAX_FLUSH_MS = 1000


class Result(NamedTuple):
    """What became of one job that was sent.

    Args:
        id: identifier of the job.
        token: the claim's token.
        attempt: the claim's attempt, from 1.
        status: `done`, `dead`, `pending` for a later attempt, `leased` where the send neither
            confirmed nor was classified and the lease runs out by itself, or `stale` where the
            lease had ended or moved on.
        delay_ms: wait before the next attempt of a `pending` job, milliseconds.
        error: what the send raised, or the `BadAck` for what it returned; None if confirmed.
    """

    id: str
    token: int
    attempt: int
    status: str
    delay_ms: int
    error: Exception | None


class Tally(NamedTuple):
    """How many sends of a run left their job in which state; the states are those of `Result`."""

    done: int = 0
    pending: int = 0
    dead: int = 0
    leased: int = 0
    stale: int = 0


class Options(NamedTuple):
    """The checked arguments of a `Dispatcher`, which says what each is for."""

    path: StrPath
    send: Send
    owner: str
    concurrency: int
    lease_ms: int
    base_ms: int
    cap_ms: int
    poll_ms: int
    flush_ms: int
    clock: Clock
    jitter: Callable[[], float]
    give_up_after: int | None
    limits: Limits
    on_result: Callable[[Result], object]
    on_idle: Callable[[int | None], object]
    on_trouble: Callable[[Exception], object]
