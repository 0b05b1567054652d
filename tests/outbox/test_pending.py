"""pending: what has not taken effect, in order, without a look at what has."""

import sqlite3
from typing import Any

import pytest

from lease.outbox import create_outbox, pending, record
from lease.outbox._pending import pages
from lease.outbox._relay import new, overdue
from tests.support.refused import integers


def put(con: sqlite3.Connection, *ids: str, state: str = "pending") -> None:
    """Insert a record for each id."""
    con.executemany(
        "INSERT INTO outbox (id, event_type, payload_json, state, created_at, processed_at) "
        "VALUES (?, 'made', '{}', ?, '2026', '2026')",
        [(each, state) for each in ids],
    )


def ids(records: list[Any]) -> list[str]:
    """Return the ids of some records."""
    return [each["id"] for each in records]


def test_pending_is_in_the_order_of_recording(box: sqlite3.Connection):
    """Neither the id nor a clock that goes back changes the order."""
    record(box, "made", 1, id="z", clock=lambda: 3000)
    record(box, "made", 2, id="m", clock=lambda: 1000)
    record(box, "made", 3, id="a", clock=lambda: 2000)

    assert pending(box) == [
        {"id": "z", "event_type": "made", "payload_json": "1"},
        {"id": "m", "event_type": "made", "payload_json": "2"},
        {"id": "a", "event_type": "made", "payload_json": "3"},
    ]


def test_pending_leaves_out_processed(box: sqlite3.Connection):
    """Only what is still to be done is listed."""
    put(box, "a", "c")
    put(box, "b", state="processed")

    assert ids(pending(box)) == ["a", "c"]


def test_pending_limits(box: sqlite3.Connection):
    """A limit cuts the list after the oldest; all of a short list fit."""
    put(box, "a", "b", "c")

    assert ids(pending(box, limit=1)) == ["a"]
    assert ids(pending(box, limit=3)) == ["a", "b", "c"]
    assert ids(pending(box, limit=4)) == ["a", "b", "c"]


def test_pending_reads_in_a_transaction(box: sqlite3.Connection):
    """What the open transaction has recorded is seen."""
    box.execute("BEGIN")
    record(box, "made", {}, id="a")
    assert ids(pending(box)) == ["a"]
    box.execute("ROLLBACK")


@pytest.mark.parametrize("limit", [c for c in integers(1, 2**31 - 1) if c.values[0] is not None])
def test_pending_refuses_limit(box: sqlite3.Connection, limit: Any):
    """A limit is an exact int from 1."""
    with pytest.raises(ValueError, match="limit must be an int"):
        pending(box, limit=limit)


def test_pages_yield_each_once(box: sqlite3.Connection):
    """Pages follow each other, whether or not their records are processed meanwhile."""
    put(box, "a", "b", "c", "d", "e")
    seen = []
    for records in pages(box, 2):
        seen.append(ids(records))
        box.execute("UPDATE outbox SET state = 'processed' WHERE id IN ('a', 'd')")

    assert seen == [["a", "b"], ["c", "e"]]


PROCESSED = 1_000_000


@pytest.fixture(scope="module")
def history() -> Any:
    """A database with a million processed records and three pending ones, in memory."""
    con = sqlite3.connect(":memory:", isolation_level=None)
    create_outbox(con)
    put(con, "first")
    con.execute(
        """
        WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < ?)
        INSERT INTO outbox (id, event_type, payload_json, state, created_at, processed_at)
        SELECT 'p-' || n, 'made', '{}', 'processed', '2026', '2026' FROM row
        """,
        (PROCESSED,),
    )
    put(con, "second", "third")
    yield con
    con.close()


def steps(con: sqlite3.Connection, read: Any) -> int:
    """Return how many virtual machine instructions SQLite runs for a read."""
    ticks = [0]

    def tick() -> int:
        ticks[0] += 1
        return 0

    con.set_progress_handler(tick, 1)
    read()
    con.set_progress_handler(None, 0)
    return ticks[0]


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(pending, id="pending"),
        pytest.param(lambda con: pending(con, limit=2), id="limit"),
        pytest.param(lambda con: list(pages(con, 1)), id="pages"),
        pytest.param(lambda con: new(con, 100), id="new"),
        pytest.param(lambda con: overdue(con, 10**12, 100), id="overdue"),
    ],
)
def test_pending_passes_over_a_million_processed(
    history: sqlite3.Connection, box: sqlite3.Connection, read: Any
):
    """A read costs the same number of steps after a million processed records as after none."""
    put(box, "first", "second", "third")
    assert read(history) == read(box)

    assert steps(history, lambda: read(history)) == steps(box, lambda: read(box))
    history.execute("ANALYZE")
    assert steps(history, lambda: read(history)) == steps(box, lambda: read(box))
