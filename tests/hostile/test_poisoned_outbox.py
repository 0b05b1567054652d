"""Jobs that somebody's own SQL has put beside an outbox: they hold up no record but their own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lease import jobs
from lease.outbox import Delivered, Record, deliver, open_outbox, pending, record
from tests.hostile.test_poison import NOW, POISON, put

GOOD = ["good-0", "good-1", "good-2"]


class Clock:
    """A clock that goes on by five milliseconds each time it is read."""

    now_ms = NOW

    def __call__(self) -> int:
        """Return the present."""
        self.now_ms += 5
        return self.now_ms


@pytest.fixture
def box(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An outbox with a queue beside it."""
    with closing(open_outbox(tmp_path / "o.db")) as con:
        jobs.create_queue(con)
        yield con


@pytest.mark.parametrize("poison", POISON)
def test_deliver_passes_over_a_job(box: sqlite3.Connection, poison: str):
    """It is not sent, it is told, its attempts run out, and every record is delivered."""
    put(box, **POISON[poison])
    for name in ["bad", *GOOD]:
        record(box, "made", {}, id=name, clock=lambda: NOW)
    sent: list[Record] = []
    told: list[Delivered] = []

    tally = deliver(
        box,
        lambda each: sent.append(each) or True,  # type: ignore[func-returns-value]  # None is False
        owner="d",
        until="drained",
        lease_ms=50,
        clock=Clock(),
        on_result=told.append,
    )

    # Where the job took the id of a record, that record waits for a redrive.
    freed = ["bad"] if "id" in POISON[poison] else []
    assert (tally.done, tally.leased, sum(tally)) == (3 + len(freed), 3, 6 + len(freed))
    assert [each["id"] for each in sent] == freed + GOOD
    assert all(isinstance(each.error, ValueError) for each in told if each.status == "leased")
    assert jobs.stats(box)["dead_reasons"]["exhausted"] == 1
    assert [each["id"] for each in pending(box)] == ([] if freed else ["bad"])
