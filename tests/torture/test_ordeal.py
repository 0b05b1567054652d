"""Killed, stopped, starved and misled, for a while and for long: nothing lost, nothing doubled."""

from pathlib import Path

import pytest

from tests.torture.ordeal import Findings, Ordeal, new_seed


def endure(folder: Path, kills: int, most_s: float) -> Findings:
    """Go through an ordeal; print its seed, and what it came to."""
    seed = new_seed()
    print(f"LEASE_SEED={seed}")  # noqa: T201  (pytest shows it where the test fails)
    found = Ordeal(folder, seed, kills, most_s).run()
    print(found)  # noqa: T201  (likewise)
    return found


def hold(found: Findings) -> None:
    """Demand what is promised, and that all of it was put to the test."""
    assert found.faults == []
    assert found.done + sum(found.dead.values()) == found.jobs
    assert found.done > 0
    assert found.stops > 0
    assert found.claims > found.done


def test_nothing_is_lost_or_doubled_for_a_while(tmp_path: Path) -> None:
    """Every accepted job is done with one effect, or dead for a true reason."""
    found = endure(tmp_path, 100, 8)

    hold(found)
    assert found.kills > 0


@pytest.mark.soak
def test_nothing_is_lost_or_doubled_for_long(tmp_path: Path) -> None:
    """After a thousand kills every accepted job is done with one effect, or truly dead."""
    found = endure(tmp_path, 1100, 130)

    hold(found)
    assert found.kills >= 1000
    assert set(found.dead) >= {"deadline", "exhausted"}
