"""prune and stats: what took effect long ago goes, a bounded number at a time."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease.errors import Conflict
from lease.outbox import Record, apply, dispatch, pending, prune, record, stats
from lease.outbox.local import LocalQueue
from tests.support.outbox import Killed, committed, deliveries, no_effect, rows, unchanged
from tests.support.queue import Hook, failing_at
from tests.support.refused import integers


def processed(con: sqlite3.Connection, *instants: int) -> list[Record]:
    """Record and process an event at each instant, in that order of recording."""
    made = [record(con, "made", n, id=f"r-{n}", clock=lambda: 0) for n in range(len(instants))]
    for each, at_ms in zip(made, instants, strict=True):
        apply(con, each, no_effect, clock=lambda at_ms=at_ms: at_ms)
    return made


def ids(con: sqlite3.Connection) -> list[str]:
    """Return the ids that are left."""
    assert [row[0] for row in deliveries(con)] == sorted(
        row["id"] for row in rows(con) if row["state"] == "processed"
    )
    return [row["id"] for row in rows(con)]


def test_prune_removes_what_was_processed_before(box: sqlite3.Connection):
    """The very instant stays, the millisecond before it goes, with its delivery."""
    processed(box, 1000, 999, 1001)

    assert prune(box, 1000, 10) == 1
    assert ids(box) == ["r-0", "r-2"]
    assert prune(box, 1001, 10) == 1
    assert ids(box) == ["r-2"]


def test_prune_is_bounded_and_takes_the_longest_processed(box: sqlite3.Connection):
    """A call removes so many at most, whatever the order of recording."""
    processed(box, 30, 10, 20, 10)

    assert prune(box, 1000, 2) == 2
    assert ids(box) == ["r-0", "r-2"]
    assert prune(box, 1000, 2) == 2
    assert prune(box, 1000, 2) == 0


def test_prune_never_touches_pending(box: sqlite3.Connection, outbox_path: Path):
    """A record that has not taken effect stays for ever, however old."""
    made = record(box, "made", {}, clock=lambda: 0)
    dispatch(box, LocalQueue(), [made], clock=lambda: 0)

    with unchanged(box, outbox_path):
        assert prune(box, 253_402_300_799_999, 2**31 - 1) == 0
    assert pending(box) == [made]


def test_prune_works_with_foreign_keys(box: sqlite3.Connection):
    """An application that enforces references can prune as well."""
    box.execute("PRAGMA foreign_keys = ON")
    processed(box, 1, 2)

    assert prune(box, 3, 10) == 2
    assert (ids(box), deliveries(box)) == ([], [])


def test_prune_forgets_an_id(box: sqlite3.Connection):
    """A late duplicate of a removed record is ignored; recorded anew, it is a new event."""
    (made,) = processed(box, 1)
    with pytest.raises(Conflict):
        record(box, "made", "other", id="r-0")
    prune(box, 2, 1)

    assert apply(box, made, no_effect) is False
    record(box, "made", "other", id="r-0")
    assert rows(box)[0]["seq"] == 2


def test_prune_calls_hooks(box: sqlite3.Connection):
    """Three boundaries where something goes, none where nothing does."""
    processed(box, 1)
    hook = Hook()
    prune(box, 2, 1, fault=hook)
    assert hook == ["after-deliveries", "after-prune", "after-commit"]
    hook.clear()
    prune(box, 2, 1, fault=hook)
    assert hook == []


@pytest.mark.parametrize(
    ("boundary", "left"), [("after-deliveries", 1), ("after-prune", 1), ("after-commit", 0)]
)
def test_prune_is_atomic(box: sqlite3.Connection, outbox_path: Path, boundary: str, left: int):
    """Record and delivery go together."""
    processed(box, 1)
    with pytest.raises(Killed):
        prune(box, 2, 1, fault=failing_at(boundary, Killed()))

    records, delivered = committed(outbox_path)
    assert (len(records), len(delivered)) == (left, left)
    assert not box.in_transaction


@pytest.mark.parametrize("before", integers(0, 253_402_300_799_999))
def test_prune_refuses_before(box: sqlite3.Connection, outbox_path: Path, before: Any):
    """An instant is an exact int that ISO 8601 can write."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match="before must be an int"):
        prune(box, before, 1)


@pytest.mark.parametrize("max_rows", integers(1, 2**31 - 1))
def test_prune_refuses_max_rows(box: sqlite3.Connection, outbox_path: Path, max_rows: Any):
    """A bound is an exact int from 1."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match="max_rows must be an int"):
        prune(box, 1, max_rows)


def test_stats_counts(box: sqlite3.Connection):
    """Each state is counted, the pushed among the pending, and the oldest of them is dated."""
    assert stats(box) == {
        "pending": 0,
        "dispatched": 0,
        "oldest_pending_at": None,
        "processed": 0,
    }
    processed(box, 1, 2)
    made = record(box, "made", {}, clock=lambda: 5)
    record(box, "made", {}, clock=lambda: 4)
    dispatch(box, LocalQueue(), [made])

    assert stats(box) == {
        "pending": 2,
        "dispatched": 1,
        "oldest_pending_at": "1970-01-01T00:00:00.005+00:00",
        "processed": 2,
    }
