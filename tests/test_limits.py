"""The bounds, as numbers that a reader can compare with the contract."""

import pytest

from lease import CONTRACT, WIDE, Limits
from lease.limits import CEILING, MAX_QTY


def test_contract_is_the_contracts_numbers() -> None:
    """One minute for every duration, 16 attempts, and instants that leave room for the minute."""
    assert CONTRACT == (10**15 - 60_000, 60_000, 60_000, 60_000, 16)
    assert (
        Limits(
            max_now_ms=10**15 - 60_000,
            max_ttl_ms=60_000,
            max_lease_ms=60_000,
            max_delay_ms=60_000,
            max_attempts=16,
        )
        == CONTRACT
    )


def test_wide_is_for_deliveries_that_take_days() -> None:
    """90 days to live, a day for a lease and a delay, a thousand attempts."""
    assert (
        Limits(
            max_now_ms=10**15 - 7_776_000_000,
            max_ttl_ms=7_776_000_000,
            max_lease_ms=86_400_000,
            max_delay_ms=86_400_000,
            max_attempts=1000,
        )
        == WIDE
    )


def test_ceiling_and_quantity() -> None:
    """Instants and tokens end at 10**15, quantities at 1000."""
    assert (CEILING, MAX_QTY) == (10**15, 1000)


@pytest.mark.parametrize("limits", [CONTRACT, WIDE], ids=["contract", "wide"])
def test_no_sum_passes_the_ceiling(limits: Limits) -> None:
    """The latest instant and the longest duration together are still an instant."""
    longest = max(limits.max_ttl_ms, limits.max_lease_ms, limits.max_delay_ms)

    assert limits.max_now_ms + longest <= 10**15


@pytest.mark.parametrize("field", Limits._fields)
def test_limits_are_frozen(field: str) -> None:
    """Nobody can widen the contract for others."""
    with pytest.raises(AttributeError):
        setattr(CONTRACT, field, 1)
