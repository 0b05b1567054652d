"""retry_delay: bounds, types, and the arithmetic of cap, jitter and rounding."""

import pytest

from lease import Limits
from lease.worker import retry_delay
from tests.support.queue import Face, each_face
from tests.support.refused import FRACTIONS, Cases, for_each_face, integers, table

GOOD = {"attempt": 1, "base_ms": 100, "cap_ms": 1000, "jitter": 1}


def unusable(limits: Limits) -> Cases:
    return table(
        attempt=integers(1, limits.max_attempts),
        base_ms=integers(1, limits.max_delay_ms),
        cap_ms=integers(GOOD["base_ms"], limits.max_delay_ms),
        jitter=FRACTIONS,
    )


@pytest.mark.parametrize(("face", "argument", "value"), for_each_face(unusable))
def test_retry_delay_refuses(face: Face, argument: str, value: object) -> None:
    """Each argument has an exact type and a range; anything else is a ValueError naming it."""
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        face.verbs.retry_delay(**(GOOD | {argument: value}))


@each_face
def test_retry_delay_accepts_every_end(face: Face) -> None:
    """The ends of each range belong to it."""
    longest = face.limits.max_delay_ms

    assert face.verbs.retry_delay(1, 1, 1, 1) == 1
    assert face.verbs.retry_delay(face.limits.max_attempts, 1, longest, 1) == min(
        2 ** (face.limits.max_attempts - 1), longest
    )
    assert face.verbs.retry_delay(1, longest, longest, 1) == longest


@pytest.mark.parametrize("cap_ms", [100, 99])
def test_retry_delay_cap_starts_at_the_base(cap_ms: int) -> None:
    """A cap equal to the base is the smallest one."""
    if cap_ms == 100:
        assert retry_delay(3, 100, cap_ms, 1) == 100
    else:
        with pytest.raises(ValueError, match="cap_ms must be an int from 100"):
            retry_delay(3, 100, cap_ms, 1)


@pytest.mark.parametrize(
    ("attempt", "delay"),
    [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (6, 1000), (16, 1000)],
)
def test_retry_delay_doubles_up_to_the_cap(attempt: int, delay: int) -> None:
    """The base doubles with each attempt after the first until the cap holds it."""
    assert retry_delay(attempt, 100, 1000, 1) == delay


@pytest.mark.parametrize(
    ("jitter", "delay"),
    [
        pytest.param(0, 0, id="int-0"),
        pytest.param(1, 1000, id="int-1"),
        pytest.param(0.0, 0, id="0.0"),
        pytest.param(-0.0, 0, id="minus-0.0"),
        pytest.param(1.0, 1000, id="1.0"),
        pytest.param(0.5, 500, id="half"),
        pytest.param(5e-324, 0, id="smallest-float"),
        pytest.param(0.0009999, 0, id="just-below-1-ms"),
        pytest.param(0.001, 1, id="1-ms"),
        pytest.param(0.9999999999999999, 999, id="just-below-1"),
    ],
)
def test_retry_delay_scales_the_capped_delay_and_rounds_down(jitter: float, delay: int) -> None:
    """The jitter multiplies what the cap left, and the product is floored to an exact int."""
    scaled = retry_delay(16, 100, 1000, jitter)

    assert delay == scaled
    assert type(scaled) is int


def test_retry_delay_caps_before_it_scales() -> None:
    """Half of a capped delay is half of the cap, not the capped half."""
    assert retry_delay(16, 60_000, 60_000, 0.5) == 30_000


def test_retry_delay_floors_where_rounding_would_not() -> None:
    """A product just below the next millisecond stays below it."""
    assert retry_delay(1, 3, 3, 0.999) == 2


def test_retry_delay_is_the_same_every_time() -> None:
    """No randomness and no clock of its own: equal arguments give equal delays."""
    assert {retry_delay(5, 100, 60_000, 0.37) for _ in range(50)} == {592}
