"""The tree by which claims search: its invariant under any history, what it costs, its care."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lease import UnusableFile, open_queue
from lease.jobs import claim, enqueue, finish, next_due, redrive, tree_check, tree_rebuild
from tests.support.histories import migration, tell
from tests.support.queue import (
    BARE_SCHEMA,
    DEADLINE,
    NOW,
    all_jobs,
    failing_at,
    job,
    put_leased,
    put_pending,
    unchanged,
)

# Histories of the ordinary run, and of the soak; a variable makes the latter longer.
ORDINARY = range(400)
SOAK = range(400, 400 + int(os.environ.get("LEASE_HISTORIES", "400")))

NEVER = 2**63 - 1


def leaves(con: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Return the bounds of each leaf."""
    rows = con.execute("SELECT leaf, ready_at, bury_at FROM tree_leaves").fetchall()
    return {leaf: (ready_at, bury_at) for leaf, ready_at, bury_at in rows}


# Any history, told twice.


@pytest.mark.parametrize("first", ORDINARY[::50])
def test_any_history_is_the_contracts(first: int):
    """Random verbs, clocks and outsiders' SQL do what they do on the bare tables."""
    for seed in range(first, first + 50):
        assert tell(seed, 60) is None


@pytest.mark.soak
@pytest.mark.parametrize("first", SOAK[::100])
def test_any_history_is_the_contracts_for_long(first: int):
    """The same with other seeds and longer."""
    for seed in range(first, first + 100):
        assert tell(seed, 150) is None


# A claim looks in vain once, if it may write, and each time otherwise.


def put_in_leaves(con: sqlite3.Connection, **columns: object) -> None:
    """Insert three jobs of the same kind, in leaves 1, 2 and 3."""
    for seq in (64, 130, 200):
        put_pending(con, id=f"job-{seq}", seq=seq, **columns)


def test_claim_that_finds_nothing_writes_nothing(con: sqlite3.Connection, queue_path: Path):
    """Bounds that are too low mislead each empty claim, and none of them changes a byte."""
    put_in_leaves(con)
    con.execute("UPDATE jobs SET available_at = ? WHERE seq < 200", (NOW + 50,))
    put_pending(con, id="newest", seq=300, available_at=NOW + 50)
    con.execute("UPDATE tree_leaves SET ready_at = 0, bury_at = 0")
    claim(con, "w", NOW)
    con.execute("UPDATE tree_leaves SET ready_at = 0, bury_at = 0")

    for _ in range(2):
        with unchanged(con, queue_path):
            assert claim(con, "w", NOW) is None


def test_claim_raises_the_bounds_that_misled_it(con: sqlite3.Connection):
    """A claim that leases a job counts anew each leaf below it in which it found none."""
    put_in_leaves(con, available_at=NOW + 50)
    put_pending(con, id="ready", seq=300)
    put_pending(con, id="also-ready", seq=400)
    con.execute("UPDATE tree_leaves SET ready_at = 0 WHERE leaf <> 2")

    assert claim(con, "w", NOW)["id"] == "ready"
    assert [ready_at for ready_at, _ in leaves(con).values()] == [NOW + 50] * 3 + [0, 0]
    assert tree_check(con) == []


def test_claim_forgets_a_leaf_without_open_jobs(con: sqlite3.Connection):
    """A leaf whose jobs are all done goes with the first claim that passes over it."""
    put_in_leaves(con)
    con.execute("DROP TRIGGER tree_raise_edited")
    con.execute("UPDATE jobs SET status = 'done' WHERE seq < 200")
    put_pending(con, id="newest", seq=300)

    assert claim(con, "w", NOW)["id"] == "job-200"
    assert list(leaves(con)) == [3, 4]


def test_sweep_raises_the_bounds_of_what_it_buried(con: sqlite3.Connection):
    """A claim that buries jobs alone leaves no bound behind that sends the next one there."""
    put_in_leaves(con, available_at=NOW + 50)
    for seq in (260, 270):
        put_pending(con, id=f"job-{seq}", seq=seq, deadline=NOW, available_at=NOW + 50)
    put_pending(con, id="stays", seq=265, available_at=NOW + 50)
    put_pending(con, id="newest", seq=400, available_at=NOW + 50)

    assert claim(con, "w", NOW) is None
    assert [row["id"] for row in all_jobs(con) if row["status"] == "dead"] == ["job-260", "job-270"]
    assert leaves(con)[4] == (NOW + 50, DEADLINE)


def test_the_newest_leaf_is_left_alone(con: sqlite3.Connection):
    """Jobs that come and go one by one write the tree once, not each time."""
    enqueue(con, {"id": "first", "qty": 1}, NOW, 60_000)
    before = leaves(con)
    for number in range(20):
        ticket = claim(con, "w", NOW + number)
        finish(con, ticket, "ok", NOW + number)
        assert leaves(con) == before
        enqueue(con, {"id": f"job-{number}", "qty": 1}, NOW + number + 1, 60_000)

    assert leaves(con) == before
    assert tree_check(con) == []


# What the triggers raise.


def test_end_of_the_last_lease_raises_the_bounds(con: sqlite3.Connection):
    """When no job of a leaf is leased or due any more, the leaf says when the next one is."""
    put_leased(con, id="a", seq=65, lease_until=NOW + 10)
    put_leased(con, id="b", seq=66, lease_until=NOW + 20)
    put_pending(con, id="later", seq=67, available_at=NOW + 5000)
    put_pending(con, id="newest", seq=300)

    con.execute("UPDATE jobs SET status = 'done' WHERE id = 'a'")
    assert leaves(con)[1][0] == NOW + 10
    con.execute("UPDATE jobs SET status = 'pending', available_at = 99999 WHERE id = 'b'")
    assert leaves(con)[1][0] == NOW + 5000


@pytest.mark.parametrize("change", ["DELETE FROM jobs", "UPDATE jobs SET status = 'done'"])
def test_last_open_job_takes_its_leaf_along(con: sqlite3.Connection, change: str):
    """Nothing is left of a leaf, or of a branch, when its last open job is gone."""
    put_leased(con, id="a", seq=65)
    put_pending(con, id="b", seq=66)
    put_pending(con, id="newest", seq=20_000)

    con.execute(f"{change} WHERE seq < 100")
    assert list(leaves(con)) == [20_000 >> 6]
    assert con.execute("SELECT branch FROM tree_branches").fetchall() == [(1,)]


def test_postponing_all_jobs_raises_the_bounds(con: sqlite3.Connection):
    """An outsider who puts every job off leaves a tree that knows."""
    fill(con, SHAPES["ready"], 199)
    con.execute("UPDATE jobs SET available_at = 90000")

    assert [leaves(con)[leaf][0] for leaf in range(4)] == [90000, 90000, 90000, NOW - 9000]
    assert next_due(con) == DEADLINE


# What it costs, in instructions of SQLite's machine and in pages; neither depends on the machine.

SHAPES = {
    "done": [("done", NOW, None)],
    "delayed": [("pending", NOW + 9000, None)],
    "ready": [("pending", NOW - 9000, None)],
    "expired": [("leased", NOW, NOW - 5)],
    "in-flight": [("leased", NOW, NOW + 9000)],
    "mixed": [
        ("pending", NOW + 9000, None),
        ("done", NOW, None),
        ("pending", NOW - 9000, None),
        ("leased", NOW, NOW - 5),
        ("leased", NOW, NOW + 9000),
    ],
}


def fill(con: sqlite3.Connection, shape: list[tuple[str, int, int | None]], size: int) -> None:
    """Insert equal blocks of jobs by plain SQL."""
    first = 1
    for status, available_at, lease_until in shape:
        con.execute(
            """
            WITH RECURSIVE row (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM row LIMIT :size)
            INSERT INTO jobs (seq, id, qty, status, attempts, max_attempts, token, available_at,
                deadline, lease_until)
            SELECT n, 'job-' || n, 1, :status, 1, 3, 1, :available_at + n % 9, :deadline + n % 7,
                :lease_until + n % 3
            FROM row
            """,
            {
                "first": first,
                "size": size // len(shape),
                "status": status,
                "available_at": available_at,
                "deadline": DEADLINE,
                "lease_until": lease_until,
            },
        )
        first += size // len(shape)


def instructions(con: sqlite3.Connection, act: Callable[[], object]) -> int:
    """Return how many instructions SQLite's machine runs for an act, in tens."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    con.set_progress_handler(step, 10)
    try:
        act()
    finally:
        con.set_progress_handler(None, 0)
    return count


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_claim_is_flat(con: sqlite3.Connection, shape: list[Any]):
    """Among 40 000 jobs of any shape a claim runs hardly more than among 400."""
    costs = []
    for size in (400, 40_000):
        con.execute("DELETE FROM jobs")
        fill(con, shape, size)
        put_pending(con, id="ready", seq=90_000)
        claim(con, "w", NOW)
        costs.append(instructions(con, lambda: claim(con, "w", NOW)))

    assert costs[1] < costs[0] + 500


@pytest.mark.parametrize("shape", ["done", "delayed", "in-flight"])
def test_claim_that_finds_nothing_is_flat(con: sqlite3.Connection, queue_path: Path, shape: str):
    """Among 40 000 jobs of which none is due, an empty claim reads little and writes nothing."""
    fill(con, SHAPES[shape], 40_000)

    with unchanged(con, queue_path):
        assert instructions(con, lambda: claim(con, "w", NOW)) < 300


def test_retries_leave_no_vain_search_behind(con: sqlite3.Connection):
    """When every job of a queue waits for its retry, an empty claim is as cheap as ever."""
    con.execute("PRAGMA synchronous = OFF")
    fill(con, SHAPES["ready"], 1000)
    while ticket := claim(con, "w", NOW, 10):
        finish(con, ticket, "retry", NOW, 5000)

    assert instructions(con, lambda: claim(con, "w", NOW + 20)) < 300


def test_sweep_costs_what_it_buries(con: sqlite3.Connection):
    """Burying ten times as many jobs among many costs ten times as much, not more."""
    costs = []
    for overdue in (300, 3000):
        con.execute("DELETE FROM jobs")
        fill(con, SHAPES["delayed"], 20_000)
        con.execute("UPDATE jobs SET deadline = ? WHERE seq <= ?", (NOW, overdue))
        costs.append(instructions(con, lambda: claim(con, "w", NOW)))
        assert (
            con.execute("SELECT count(*) FROM jobs WHERE status = 'dead'").fetchone()[0] == overdue
        )

    assert costs[1] < 12 * costs[0]


def test_next_due_is_flat(con: sqlite3.Connection):
    """An idle worker's question reads little among 40 000 jobs that wait."""
    fill(con, SHAPES["delayed"], 40_000)

    assert next_due(con) == NOW + 9000
    assert instructions(con, lambda: next_due(con)) < 2000


def pages(con: sqlite3.Connection) -> list[bytes]:
    """Return the pages of the database."""
    image = con.serialize()
    return [image[at : at + 4096] for at in range(0, len(image), 4096)]


def written(con: sqlite3.Connection, act: Callable[[], object]) -> int:
    """Count the pages that differ after an act."""
    before = pages(con)
    act()
    after = pages(con)
    return sum(old != new for old, new in zip(before, after, strict=False)) + abs(
        len(after) - len(before)
    )


def lifetimes(con: sqlite3.Connection, backlog: int, number: int) -> dict[str, int]:
    """Return the pages written by some enqueues, claims and finishes among a backlog."""
    con.execute("PRAGMA synchronous = OFF")
    fill(con, SHAPES["ready"], backlog)
    costs = {"enqueue": 0, "claim": 0, "finish": 0}
    tickets: list[Any] = []
    for each in range(number):
        event = {"id": f"new-{each}", "qty": 1}
        costs["enqueue"] += written(con, partial(enqueue, con, event, NOW, 9000))
        costs["claim"] += written(con, lambda: tickets.append(claim(con, "w", NOW)))
        costs["finish"] += written(con, lambda: finish(con, tickets[-1], "ok", NOW))
    return costs


def bare_file(path: Path) -> sqlite3.Connection:
    """Make a queue by hand, with the contract's two tables and nothing else."""
    con = sqlite3.connect(path, isolation_level=None)
    con.executescript(BARE_SCHEMA)
    return con


def test_verbs_write_no_page_more_than_without_the_tree(queue_path: Path):
    """Over 256 jobs, which is four leaves, the tree adds less than one page in twenty writes."""
    with closing(bare_file(queue_path.with_suffix(".bare"))) as con:
        bare = lifetimes(con, 300, 256)
    with closing(open_queue(queue_path)) as con:
        ours = lifetimes(con, 300, 256)

    assert {verb: ours[verb] - bare[verb] < 256 / 20 for verb in bare} == dict.fromkeys(bare, True)


# A file without the tree.


@pytest.fixture
def bare(queue_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a queue that `open_queue` has never seen."""
    with closing(bare_file(queue_path)) as con:
        yield con


def test_claim_works_on_the_bare_tables(bare: sqlite3.Connection):
    """The contract's two tables are enough for a claim: it buries, leases and leaves alone."""
    put_pending(bare, id="overdue", deadline=NOW)
    put_leased(bare, id="used-up", attempts=3, lease_until=NOW)
    put_pending(bare, id="later", available_at=NOW + 1)
    put_leased(bare, id="held", lease_until=NOW + 1)
    put_leased(bare, id="expired", lease_until=NOW)
    put_pending(bare, id="ready")

    assert claim(bare, "w", NOW)["id"] == "expired"
    assert claim(bare, "w", NOW)["id"] == "ready"
    assert claim(bare, "w", NOW) is None
    assert [(row["id"], row["reason"]) for row in all_jobs(bare) if row["status"] == "dead"] == [
        ("overdue", "deadline"),
        ("used-up", "exhausted"),
    ]


def test_claim_of_nothing_on_the_bare_tables(bare: sqlite3.Connection, queue_path: Path):
    """Where nothing is due, no byte changes there either."""
    put_pending(bare, available_at=NOW + 1)

    with unchanged(bare, queue_path):
        assert claim(bare, "w", NOW) is None


def test_claim_without_the_contracts_tables(tmp_path: Path):
    """A file that is no queue is reported as SQLite reports it, with no transaction left."""
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as con:
        with pytest.raises(sqlite3.OperationalError, match="no such table: jobs"):
            claim(con, "w", NOW)
        assert not con.in_transaction


def test_claim_that_is_interrupted(con: sqlite3.Connection):
    """Only a missing tree makes a claim read all jobs; any other error comes out."""
    fill(con, SHAPES["ready"], 200)
    once = iter([1])
    con.set_progress_handler(lambda: con.in_transaction and next(once, 0), 1)

    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        claim(con, "w", NOW)
    con.set_progress_handler(None, 0)
    assert not con.in_transaction
    assert claim(con, "w", NOW)["id"] == "job-1"


def test_opening_grows_the_tree(bare: sqlite3.Connection, queue_path: Path):
    """A file with jobs in it gets its tree in the transaction that brings it up to date."""
    for seq in (1, 64, 65, 20_000):
        put_pending(bare, id=f"job-{seq}", seq=seq)
    put_leased(bare, id="leased", seq=70, lease_until=5)
    put_pending(bare, id="done", seq=999, status="done")

    with closing(open_queue(queue_path)) as con:
        assert tree_check(con) == []
        assert leaves(con) == {
            0: (NOW, DEADLINE),
            1: (5, DEADLINE),
            20_000 >> 6: (NOW, DEADLINE),
        }


def test_rollback_puts_the_index_back(con: sqlite3.Connection):
    """Without the tree the schema is that of the migration before, and claims still work."""
    put_pending(con)
    con.executescript(migration("queue_0003_tree.rollback"))
    names = con.execute(
        "SELECT name FROM sqlite_schema WHERE name LIKE '%tree%' OR name IN "
        "('open_jobs', 'jobs_open_idx')"
    )

    assert names.fetchall() == [("jobs_open_idx",)]
    assert claim(con, "w", NOW)["id"] == "job-1"


# Its care.


def test_tree_check_of_a_sound_tree(con: sqlite3.Connection):
    """Nothing is wrong with a new queue, nor with a leaf whose bounds are too low."""
    assert tree_check(con) == []
    put_pending(con)
    con.execute("UPDATE tree_leaves SET ready_at = 0, bury_at = 0")

    assert tree_check(con) == []


FAULTS = {
    "UPDATE tree_leaves SET ready_at = 10001": "leaf 0 has ready_at=10001, bury_at=50000",
    "UPDATE tree_leaves SET bury_at = 50001": "leaf 0 has ready_at=10000, bury_at=50001",
    "DELETE FROM tree_leaves": "leaf 0 has ready_at=None, bury_at=None",
    "UPDATE tree_branches SET ready_at = 10001": "branch 0 has ready_at=10001, bury_at=50000",
    "UPDATE tree_branches SET ready_at = 9999": "branch 0 has ready_at=9999, bury_at=50000",
    "UPDATE tree_branches SET bury_at = 50001": "branch 0 has ready_at=10000, bury_at=50001",
    "DELETE FROM tree_branches": "branch 0 has ready_at=None, bury_at=None",
    "INSERT INTO tree_branches VALUES (7, 1, 2)": "branch 7 has ready_at=1, bury_at=2",
}


@pytest.mark.parametrize(("damage", "report"), FAULTS.items(), ids=FAULTS)
def test_tree_rebuild_mends_what_tree_check_reports(
    con: sqlite3.Connection, damage: str, report: str
):
    """Every breach of the invariant is one line that tells what to do, and doing it helps."""
    put_pending(con)
    con.execute(damage)

    (fault,) = tree_check(con)
    assert fault.startswith(report)
    assert fault.endswith("; rebuild the tree")
    tree_rebuild(con)
    assert tree_check(con) == []
    assert leaves(con) == {0: (NOW, DEADLINE)}
    assert claim(con, "w", NOW)["id"] == "job-1"


def test_tree_check_of_a_file_without_the_tree(bare: sqlite3.Connection):
    """A bare file is not called sound."""
    assert tree_check(bare) == [
        "the file lacks the migration queue_0003_tree; open_queue applies it"
    ]


def test_tree_rebuild_refuses_what_it_cannot_mend(con: sqlite3.Connection, queue_path: Path):
    """Without its triggers a rebuilt tree would go wrong again: an error, and nothing changes."""
    put_pending(con)
    con.execute("DROP TRIGGER tree_lower_updated")

    with (
        unchanged(con, queue_path),
        pytest.raises(UnusableFile, match="the trigger tree_lower_updated is missing"),
    ):
        tree_rebuild(con)


def test_fault_before_the_commit_takes_the_tree_back_too(con: sqlite3.Connection):
    """The tree is part of the transaction that it follows."""
    put_pending(con, attempts=2, deadline=NOW + 500)
    before = leaves(con)
    with pytest.raises(RuntimeError):
        claim(con, "w", NOW, 10, failing_at("after-claim", RuntimeError()))

    assert leaves(con) == before
    claim(con, "w", NOW, 10)
    assert leaves(con) == {0: (NOW, NOW + 10)}


def test_redrive_lowers_the_bounds(con: sqlite3.Connection):
    """A job that comes back from quarantine is found again, also below a branch that was gone."""
    put_pending(con, id="old", seq=65, deadline=NOW)
    put_pending(con, id="newest", seq=40_000, available_at=NOW + 99)
    assert claim(con, "w", NOW) is None
    assert list(leaves(con)) == [40_000 >> 6]
    redrive(con, "old", NOW + 1, 1000, "note")

    assert claim(con, "w", NOW + 1)["id"] == "old"
    assert job(con, "newest")["status"] == "pending"
