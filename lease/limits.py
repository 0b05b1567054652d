"""The bounds of every number that a caller may pass, as one frozen value."""

from typing import NamedTuple

# No stored instant, deadline or token is above this; SQLite and JSON both hold it exactly.
CEILING = 10**15

MAX_QTY = 1000

# A batch of this size holds the write lock for about a tenth of the second that others wait.
MAX_BATCH = 10_000

# A larger document belongs in a place of its own, with its address in the event.
MAX_PAYLOAD_BYTES = 1_048_576


class Limits(NamedTuple):
    """The largest values that a verb accepts; durations in milliseconds.

    Args:
        max_now_ms: latest instant; `max_now_ms` plus any one duration stays within `CEILING`.
        max_ttl_ms: longest time to live of a job.
        max_lease_ms: longest lease.
        max_delay_ms: longest delay before a retry, and the largest backoff base and cap.
        max_attempts: largest attempt budget.
    """

    max_now_ms: int
    max_ttl_ms: int
    max_lease_ms: int
    max_delay_ms: int
    max_attempts: int


_MINUTE = 60_000
_DAY = 24 * 60 * _MINUTE

#: The bounds of the contract, to the letter.
CONTRACT = Limits(
    max_now_ms=CEILING - _MINUTE,
    max_ttl_ms=_MINUTE,
    max_lease_ms=_MINUTE,
    max_delay_ms=_MINUTE,
    max_attempts=16,
)

#: Bounds for real deliveries, which are retried for hours and kept for months.
WIDE = Limits(
    max_now_ms=CEILING - 90 * _DAY,
    max_ttl_ms=90 * _DAY,
    max_lease_ms=_DAY,
    max_delay_ms=_DAY,
    max_attempts=1000,
)
