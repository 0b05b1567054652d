"""Killed, stopped, starved and misled, for a while and for long: nothing lost, nothing doubled."""

from pathlib import Path
from typing import get_args

import pytest

from lease.db.durability import JournalMode
from tests.torture.ordeal import Findings, Ordeal, new_seed

each_journal = pytest.mark.parametrize("mode", get_args(JournalMode))


def endure(folder: Path, mode: JournalMode, kills: int, most_s: float) -> Findings:
    """Go through an ordeal; print its seed, and what it came to."""
    seed = new_seed()
    print(f"LEASE_SEED={seed}")  # noqa: T201  (pytest shows it where the test fails)
    found = Ordeal(folder, seed, mode, kills, most_s).run()
    print(found)  # noqa: T201  (likewise)
    return found


def hold(found: Findings) -> None:
    """Demand what is promised, and that all of it was put to the test."""
    assert found.faults == []
    assert found.done + sum(found.dead.values()) == found.jobs
    assert found.done > 0
    assert found.claims > found.done
    assert found.looks > 0


@each_journal
def test_nothing_is_lost_or_doubled_for_a_while(tmp_path: Path, mode: JournalMode) -> None:
    """Every accepted job is done with one effect, or dead for a true reason."""
    found = endure(tmp_path, mode, 50, 4)

    hold(found)
    assert found.kills > 0


@pytest.mark.soak
@each_journal
def test_nothing_is_lost_or_doubled_for_long(tmp_path: Path, mode: JournalMode) -> None:
    """After half a thousand kills every accepted job is done with one effect, or truly dead."""
    found = endure(tmp_path, mode, 550, 65)

    hold(found)
    assert found.kills >= 500
    assert found.stops > 0
    assert found.died_of == {"deadline", "exhausted", "permanent"}
    assert 0 < found.in_bulk < found.redrives
