"""How long to wait before the next attempt."""

from math import floor

from lease import checks
from lease.limits import WIDE, Limits


def retry_delay(
    attempt: int, base_ms: int, cap_ms: int, jitter: float, *, limits: Limits = WIDE
) -> int:
    """Return the exponential backoff of an attempt, capped and then scaled by the jitter.

    Args:
        attempt: the attempt that failed, from 1.
        base_ms: delay after the first attempt, milliseconds from 1; doubles with each attempt.
        cap_ms: longest delay, milliseconds from `base_ms`.
        jitter: the caller's random share of the delay, from 0 to 1.
        limits: the upper bounds of the numbers.

    Returns:
        Whole milliseconds, rounded down, never above the cap.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Source: contract, step 1.
    """
    checks.integer("attempt", attempt, 1, limits.max_attempts)
    checks.integer("base_ms", base_ms, 1, limits.max_delay_ms)
    checks.integer("cap_ms", cap_ms, base_ms, limits.max_delay_ms)
    checks.fraction("jitter", jitter)
    ceiling_ms: int = min(cap_ms, base_ms * 2 ** (attempt - 1))
    return floor(ceiling_ms * jitter)
