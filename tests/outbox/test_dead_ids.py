"""dead_ids: the pending records whose own jobs are dead, each once, in batches."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import jobs
from lease.outbox import apply, dead_ids, pending, record
from lease.outbox._pending import pages
from tests.support.outbox import no_effect
from tests.support.queue import NOW, audits, put_dead, put_leased, put_pending
from tests.support.refused import Str, integers, table


@pytest.fixture(params=["one file", "two files"])
def queue(
    request: pytest.FixtureRequest, tmp_path: Path, box: sqlite3.Connection
) -> Iterator[sqlite3.Connection]:
    """The queue beside the outbox, or in a file of its own."""
    if request.param == "one file":
        jobs.create_queue(box)
        yield box
    else:
        with closing(jobs.open_queue(tmp_path / "queue.db")) as con:
            yield con


def put(box: sqlite3.Connection, queue: sqlite3.Connection, *ids: str, **columns: Any) -> None:
    """Record events whose jobs are dead."""
    for name in ids:
        record(box, "made", {}, id=name, clock=lambda: NOW)
        put_dead(queue, **({"id": name, "qty": 1} | columns))


def test_dead_ids_yields_records_that_wait_for_a_redrive(
    box: sqlite3.Connection, queue: sqlite3.Connection
) -> None:
    """A dead job of their own is what they have in common."""
    put(box, queue, "b", reason="permanent")
    put(box, queue, "a", reason="deadline")
    put(box, queue, "c", reason="permanent")
    for name in ("fresh", "waiting", "held", "foreign", "effected"):
        record(box, "made", {}, id=name, clock=lambda: NOW)
    put_pending(queue, id="waiting", qty=1)
    put_leased(queue, id="held", qty=1)
    put_dead(queue, id="foreign", qty=2)
    put_dead(queue, id="effected", qty=1)
    hint: Any = {"id": "effected", "event_type": "made", "payload_json": "{}"}
    apply(box, hint, no_effect, clock=lambda: NOW)
    put_dead(queue, id="without-record", qty=1)

    assert list(dead_ids(box, queue)) == [["b", "a", "c"]]
    assert list(dead_ids(box, queue, "permanent")) == [["b", "c"]]
    assert list(dead_ids(box, queue, "exhausted")) == []
    assert not box.in_transaction


@pytest.mark.parametrize(
    ("number", "sizes"), [(0, []), (1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2])]
)
def test_dead_ids_comes_in_batches(
    box: sqlite3.Connection, queue: sqlite3.Connection, number: int, sizes: list[int]
) -> None:
    """Every record once, and no batch without one."""
    ids = [f"o-{each}" for each in range(number)]
    put(box, queue, *ids)
    batches = list(dead_ids(box, queue, max_ids=2))

    assert [len(batch) for batch in batches] == sizes
    assert [each for batch in batches for each in batch] == ids


def test_dead_ids_passes_over_pages_without_one(
    box: sqlite3.Connection, queue: sqlite3.Connection
) -> None:
    """However many records are pending for another reason, the walk goes on behind them."""
    for number in range(5):
        record(box, "made", {}, id=f"fresh-{number}", clock=lambda: NOW)
    put(box, queue, "o-1")

    assert list(dead_ids(box, queue, max_ids=2)) == [["o-1"]]


@pytest.mark.parametrize(
    "odd", ["'a b'", f"'{'x' * 65}'", "'a' || char(0)", "CAST(x'6100ff' AS TEXT)"]
)
def test_dead_ids_passes_over_what_no_verb_takes(
    box: sqlite3.Connection, queue: sqlite3.Connection, odd: str
) -> None:
    """An id that an outsider made up costs no other record its release."""
    put(box, queue, "a", "odd", "b")
    box.execute("PRAGMA ignore_check_constraints = ON")
    box.execute(f"UPDATE outbox SET id = {odd} WHERE id = 'odd'")
    queue.execute(f"UPDATE jobs SET id = {odd} WHERE id = 'odd'")

    assert list(dead_ids(box, queue)) == [["a", "b"]]


@pytest.mark.parametrize("max_ids", [1, 2, 9])
def test_dead_ids_begins_with_the_smallest_seq(
    box: sqlite3.Connection, queue: sqlite3.Connection, max_ids: int
) -> None:
    """An outsider may have chosen any integer, and each record is met once."""
    seqs = [-(2**63), -1, 0, 1, 2**63 - 1]
    for seq in seqs:
        put(box, queue, f"o{seq}")
        box.execute("UPDATE outbox SET seq = ? WHERE id = ?", [seq, f"o{seq}"])

    found = [each for batch in dead_ids(box, queue, max_ids=max_ids) for each in batch]
    assert found == [f"o{seq}" for seq in seqs]
    assert [each["id"] for each in pending(box)] == found
    assert [each["id"] for records in pages(box, 2) for each in records] == found


def test_dead_ids_meets_no_record_twice(box: sqlite3.Connection, queue: sqlite3.Connection) -> None:
    """A job that was released on the way and died again at once is left to the next walk."""
    ids = [f"o-{each}" for each in range(5)]
    put(box, queue, *ids)
    for batch in dead_ids(box, queue, max_ids=2):
        jobs.redrive_many(queue, batch, NOW, 1000, "n")
        queue.execute("UPDATE jobs SET status = 'dead', reason = 'exhausted'")

    assert [each["id"] for each in audits(queue)] == ids


@pytest.mark.parametrize("reason", [None, "exhausted"])
def test_dead_ids_ends_though_new_records_die(
    box: sqlite3.Connection, queue: sqlite3.Connection, reason: Any
) -> None:
    """The walk goes as far as the record that was the newest one at its start, and no further."""
    ids = [f"o-{each}" for each in range(3)]
    put(box, queue, *ids)
    seen: list[str] = []
    for batch in dead_ids(box, queue, reason, max_ids=2):
        seen += batch
        put(box, queue, *(f"new-{len(seen)}-{each}" for each in range(3)))

    assert seen == ids


@pytest.mark.parametrize(
    ("argument", "value"),
    [*table(max_ids=integers(1, 10_000)), ("reason", "retry"), ("reason", Str("deadline"))],
)
def test_dead_ids_refuses(box: sqlite3.Connection, argument: str, value: object) -> None:
    """It does so when it is called, before the first batch is asked for."""
    with pytest.raises(ValueError, match=f"^{argument} must be "):
        dead_ids(box, box, **{argument: value})  # type: ignore[arg-type]
