"""SteadyClock: never backwards, and never silent about a source that went back."""

import time

from lease.clock import SteadyClock, wall_ms


def steady(*readings: int) -> tuple[list[int], list[int]]:
    source = iter(readings)
    steps: list[int] = []
    clock = SteadyClock(lambda: next(source), steps.append)
    return [clock() for _ in readings[1:]], steps


def test_steady_clock_follows_its_source() -> None:
    """Ahead and standing still are both no step back."""
    assert steady(1, 2, 2, 5) == ([2, 2, 5], [])


def test_steady_clock_stands_still_until_the_source_catches_up() -> None:
    """A step back is told once, by its size, and the readings wait."""
    assert steady(10, 7, 8, 10, 11) == ([10, 10, 10, 11], [3])


def test_steady_clock_tells_each_step_back() -> None:
    """A second step is told although the source had not caught up."""
    assert steady(10, 7, 9, 8, 12) == ([10, 10, 10, 12], [3, 1])


def test_steady_clock_needs_nobody_to_tell() -> None:
    """Without a listener a step back is only held off."""
    readings = iter([5, 4])

    assert SteadyClock(lambda: next(readings))() == 5


def test_wall_ms_is_the_time_since_1970() -> None:
    """The readings are whole milliseconds of the wall clock."""
    before = int(time.time() * 1000) - 1
    now = SteadyClock()()

    assert type(wall_ms()) is int
    assert before <= now <= wall_ms() + 1
