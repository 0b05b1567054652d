"""dead_ids: every dead job once, in batches that may be released on the way."""

import sqlite3
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lease.jobs import dead_ids, redrive_many
from tests.support.queue import (
    NOW,
    audits,
    job,
    put_dead,
    put_leased,
    put_pending,
    unchanged,
    without_waiting,
    writing,
)
from tests.support.refused import Str, integers, table


def put_many(con: sqlite3.Connection, number: int, **columns: object) -> list[str]:
    """Put so many dead jobs; return their ids."""
    return [put_dead(con, id=f"job-{each}", **columns)["id"] for each in range(number)]


def test_dead_ids_yields_the_dead_in_order_of_intake(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Whatever they died of; no other job is among them."""
    put_pending(con, id="waiting")
    put_dead(con, id="z", reason="permanent")
    put_leased(con, id="held")
    put_dead(con, id="a", reason="deadline")
    put_dead(con, id="over", status="done", reason=None)
    put_dead(con, id="by-hand", reason=None)

    with unchanged(con, queue_path):
        assert list(dead_ids(con)) == [["z", "a", "by-hand"]]


def test_dead_ids_of_one_reason(con: sqlite3.Connection) -> None:
    """The others stay where they are."""
    put_dead(con, id="a", reason="permanent")
    put_dead(con, id="b", reason="deadline")
    put_dead(con, id="c", reason="exhausted")
    put_dead(con, id="d", reason="permanent")

    assert list(dead_ids(con, "permanent")) == [["a", "d"]]
    assert list(dead_ids(con, "deadline")) == [["b"]]
    assert list(dead_ids(con, "exhausted")) == [["c"]]


@pytest.mark.parametrize(
    ("number", "sizes"), [(0, []), (1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2]), (5, [2, 2, 1])]
)
def test_dead_ids_yields_full_batches(
    con: sqlite3.Connection, number: int, sizes: list[int]
) -> None:
    """Only the last one is smaller, and none is empty."""
    ids = put_many(con, number)
    put_pending(con, id="waiting")
    batches = list(dead_ids(con, max_ids=2))

    assert [len(batch) for batch in batches] == sizes
    assert [each for batch in batches for each in batch] == ids


@pytest.mark.parametrize(
    "odd",
    [
        "''",
        "'a b'",
        f"'{'x' * 65}'",
        "'é'",
        "x'6162'",
        "'a' || char(0)",
        "CAST(x'ff' AS TEXT)",
        "CAST(x'6100ff' AS TEXT)",
    ],
)
def test_dead_ids_passes_over_what_no_verb_takes(con: sqlite3.Connection, odd: str) -> None:
    """An id that an outsider made up costs no other job its release."""
    for name in ("a", "odd", "b"):
        put_dead(con, id=name)
    con.execute(f"UPDATE jobs SET id = {odd}, owner = CAST(x'ff' AS TEXT) WHERE id = 'odd'")

    assert list(dead_ids(con)) == [["a", "b"]]
    assert list(dead_ids(con, max_ids=1)) == [["a"], ["b"]]


@pytest.mark.parametrize("max_ids", [1, 2, 9])
def test_dead_ids_begins_with_the_smallest_seq(con: sqlite3.Connection, max_ids: int) -> None:
    """An outsider may have chosen any integer, and each job is met once."""
    seqs = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]
    ids = [put_dead(con, seq=seq, id=f"job{seq}")["id"] for seq in seqs]

    assert [each for batch in dead_ids(con, max_ids=max_ids) for each in batch] == ids


@pytest.mark.parametrize("seq", [-5, 0])
def test_dead_ids_of_the_smallest_seq_alone(con: sqlite3.Connection, seq: int) -> None:
    """A queue may end before the first seq that SQLite would have chosen."""
    put_dead(con, seq=seq)

    assert list(dead_ids(con)) == [["job-1"]]


def test_dead_ids_meets_no_job_twice(con: sqlite3.Connection) -> None:
    """A job that was released on the way and died again at once is left to the next walk."""
    ids = put_many(con, 5)
    for batch in dead_ids(con, max_ids=2):
        assert redrive_many(con, batch, NOW, 1000, "n") == ["redriven"] * len(batch)
        con.execute("UPDATE jobs SET status = 'dead', reason = 'exhausted'")

    assert [each["id"] for each in audits(con)] == ids
    assert list(dead_ids(con, max_ids=5)) == [ids]


@pytest.mark.parametrize("reason", [None, "exhausted"])
def test_dead_ids_ends_though_new_jobs_die(con: sqlite3.Connection, reason: Any) -> None:
    """The walk goes as far as the job that was the newest one at its start, and no further."""
    ids = put_many(con, 4)
    numbers = count()
    seen: list[str] = []
    for batch in dead_ids(con, reason, max_ids=2):
        seen += batch
        for _ in range(3):
            put_dead(con, id=f"new-{next(numbers)}")

    assert seen == ids


def test_dead_ids_leaves_out_a_newer_job_of_the_last_batch(con: sqlite3.Connection) -> None:
    """A batch that reaches beyond the end is cut there."""
    ids = put_many(con, 3)
    walk = dead_ids(con, max_ids=2)
    assert next(walk) == ids[:2]
    put_dead(con, id="new")

    assert list(walk) == [ids[2:]]


def test_dead_ids_reads_each_batch_when_it_is_asked_for(con: sqlite3.Connection) -> None:
    """What somebody else has released meanwhile is not yielded any more."""
    ids = put_many(con, 4)
    walk = dead_ids(con, max_ids=2)
    assert next(walk) == ids[:2]
    redrive_many(con, ids[2:3], NOW, 1000, "n")

    assert list(walk) == [ids[3:]]
    assert job(con, ids[2])["status"] == "pending"


def test_dead_ids_holds_no_lock_between_batches(con: sqlite3.Connection, queue_path: Path) -> None:
    """Others may write while a batch is worked on, and the walk reads while others write."""
    ids = put_many(con, 3)
    without_waiting(con)
    walk = dead_ids(con, max_ids=2)
    next(walk)

    with writing(queue_path) as other:
        other.execute("UPDATE jobs SET reason = 'deadline'")
        assert list(walk) == [ids[2:]]
        other.execute("COMMIT")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *table(max_ids=integers(1, 10_000)),
        ("reason", "retry"),
        ("reason", "dead"),
        ("reason", Str("permanent")),
    ],
)
def test_dead_ids_refuses(con: sqlite3.Connection, argument: str, value: object) -> None:
    """It does so when it is called, before the first batch is asked for."""
    with pytest.raises(ValueError, match=f"^{argument} must be "):
        dead_ids(con, **{argument: value})  # type: ignore[arg-type]
