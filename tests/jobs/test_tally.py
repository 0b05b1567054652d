"""The tally from which stats are told: exact under anybody's SQL, flat in cost, its care.

Random histories in `test_tree.py` hold it against plain counting as well.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import UnusableFile, jobs, open_queue
from tests.jobs.test_tree import SHAPES, bare_file, fill, instructions, written
from tests.support import shadow
from tests.support.histories import migration
from tests.support.queue import NOW, put_dead, put_leased, put_pending, unchanged

BLOCK = 128
BUSY = 8


@pytest.fixture
def quiet(con: sqlite3.Connection) -> sqlite3.Connection:
    """A queue with a job in each of some blocks, none of which is busy."""
    put_pending(con, id="first", seq=1, token=3)
    put_leased(con, id="last-of-0", seq=127, token=5)
    put_dead(con, id="first-of-1", seq=128, reason="permanent", token=7)
    put_dead(con, id="far", seq=5000, status="done", reason=None, token=11)
    calm(con)
    return con


def calm(con: sqlite3.Connection) -> None:
    """Make every block quiet."""
    con.execute("DELETE FROM tally_busy")


def busy(con: sqlite3.Connection) -> list[int]:
    """Return the busy blocks, the one that has been so longest first."""
    return [block for (block,) in con.execute("SELECT block FROM tally_busy ORDER BY turn")]


def is_exact(con: sqlite3.Connection) -> bool:
    """Tell whether stats are what counting one by one comes to, with all blocks quiet as well."""
    found = jobs.stats(con) == shadow.stats(con) and jobs.tally_check(con) == []
    calm(con)
    return found and jobs.stats(con) == shadow.stats(con) and jobs.tally_check(con) == []


INSERT = (
    "INTO jobs (seq, id, qty, status, attempts, max_attempts, token, available_at, deadline)"
    " VALUES ({seq}, '{id}', 1, '{status}', 0, 3, {token}, 0, 0)"
)

# What anybody may do, and the blocks in which it changes what is counted.
CHANGES = {
    "INSERT " + INSERT.format(seq=2, id="new", status="pending", token=1): [0],
    "INSERT " + INSERT.format(seq="NULL", id="new", status="done", token=1): [39],
    "INSERT " + INSERT.format(seq=-1, id="new", status="done", token=1): [-1],
    "INSERT OR REPLACE " + INSERT.format(seq=129, id="first", status="done", token=1): [0, 1],
    "INSERT OR REPLACE " + INSERT.format(seq=128, id="new", status="done", token=1): [1],
    "INSERT OR REPLACE " + INSERT.format(seq=128, id="far", status="done", token=1): [1, 39],
    "INSERT "
    + INSERT.format(seq=300, id="far", status="done", token=1)
    + " ON CONFLICT (id) DO UPDATE SET token = 1": [39],
    "UPDATE jobs SET status = 'done' WHERE id = 'first'": [0],
    "UPDATE jobs SET reason = 'exhausted' WHERE status = 'dead'": [1],
    "UPDATE jobs SET reason = 'of another kind' WHERE status = 'dead'": [1],
    "UPDATE jobs SET token = token + 1": [0, 1, 39],
    "UPDATE jobs SET seq = 300 WHERE id = 'first'": [0, 2],
    "UPDATE jobs SET seq = 300, id = 'renamed' WHERE id = 'first'": [0, 2],
    "UPDATE OR REPLACE jobs SET seq = 128 WHERE id = 'first'": [0, 1],
    "UPDATE OR REPLACE jobs SET id = 'far' WHERE id = 'first'": [0, 39],
    "UPDATE OR REPLACE jobs SET id = 'far', seq = 128 WHERE id = 'first'": [0, 1, 39],
    "UPDATE OR IGNORE jobs SET id = 'far', status = 'done' WHERE id = 'first'": [0, 39],
    "DELETE FROM jobs WHERE seq = 127": [0],
    "DELETE FROM jobs": [0, 1, 39],
    "UPDATE jobs SET available_at = 7, attempts = 1, deadline = 9, lease_until = 8": [],
}


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize(("change", "blocks"), CHANGES.items(), ids=CHANGES)
def test_any_change_is_counted(
    quiet: sqlite3.Connection, change: str, blocks: list[int], recursive: bool
):
    """Whatever a statement changes, the stats are exact afterwards, and only its blocks busy."""
    quiet.execute(f"PRAGMA recursive_triggers = {recursive}")
    quiet.execute(change)

    assert set(blocks) <= set(busy(quiet)) <= {*blocks, -1}
    assert is_exact(quiet)


@pytest.mark.parametrize("change", CHANGES, ids=CHANGES)
def test_rollback_takes_the_tally_back(quiet: sqlite3.Connection, queue_path: Path, change: str):
    """The tally is part of the transaction that it follows."""
    with unchanged(quiet, queue_path):
        quiet.execute("BEGIN")
        quiet.execute(change)
        quiet.execute("ROLLBACK")
    assert is_exact(quiet)


def test_eight_blocks_are_busy_at_most(con: sqlite3.Connection):
    """The ninth sends the one that has been busy longest back; later ones do likewise."""
    for block in range(BUSY):
        put_pending(con, id=f"job-{block}", seq=block * BLOCK)
    assert busy(con) == list(range(BUSY))

    put_pending(con, id="again", seq=1)
    assert busy(con) == list(range(BUSY))
    put_pending(con, id="one-more", seq=BUSY * BLOCK)
    assert busy(con) == list(range(1, BUSY + 1))
    put_pending(con, id="back", seq=2)
    assert busy(con) == [*range(2, BUSY + 1), 0]
    assert is_exact(con)


# What a full set of busy blocks must survive: changes of jobs in the one that goes next.
CROWDED = [
    "UPDATE jobs SET seq = 1159 WHERE id = 'job-0'",
    "INSERT OR REPLACE " + INSERT.format(seq=1157, id="job-0", status="pending", token=1),
    "INSERT OR REPLACE " + INSERT.format(seq=1200, id="job-0", status="done", token=1),
    "UPDATE OR REPLACE jobs SET id = 'job-0' WHERE id = 'job-9'",
    "UPDATE OR REPLACE jobs SET id = 'job-0', status = 'dead' WHERE id = 'job-9'",
    "UPDATE OR REPLACE jobs SET seq = 5, id = 'job-10' WHERE id = 'job-9'",
    "UPDATE OR REPLACE jobs SET seq = 133, id = 'job-0' WHERE id = 'job-2'",
    "DELETE FROM jobs WHERE id IN ('job-9', 'job-0')",
]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("change", CROWDED)
def test_change_of_several_blocks_keeps_them_all_busy(
    con: sqlite3.Connection, change: str, first: int
):
    """A block that is about to be put back is not put back in the midst of its own change."""
    for block in range(12):
        job_id = f"job-{block}"
        put_dead(con, id=job_id, seq=block * BLOCK + 5, status="done", reason=None, token=block + 1)
    calm(con)
    for block in range(first, first + BUSY):
        con.execute("UPDATE jobs SET token = token + 1 WHERE id = ?", (f"job-{block}",))
    con.execute(change)

    assert is_exact(con)


def test_one_statement_may_touch_many_blocks(con: sqlite3.Connection):
    """A statement that changes a job in each of forty blocks is counted as it goes."""
    fill(con, SHAPES["ready"], 40 * BLOCK)
    calm(con)
    con.execute("UPDATE jobs SET status = 'done', token = 9")

    assert len(busy(con)) == BUSY
    assert is_exact(con)


def test_reasons_that_are_not_told_apart_share_a_total(con: sqlite3.Connection):
    """However many reasons somebody makes up, the totals stay seven at most."""
    for number in range(20):
        put_dead(con, id=f"job-{number}", reason=f"reason {number}")
    for reason in ("deadline", "exhausted", "permanent", None):
        put_dead(con, id=f"dead-{reason}", reason=reason)
    put_dead(con, id="done", status="done", reason="permanent")
    put_pending(con, id="pending", reason="retry")
    put_leased(con, id="leased")
    calm(con)

    totals = con.execute("SELECT status, reason, jobs FROM tally_totals WHERE jobs").fetchall()
    assert totals == [
        ("dead", "", 21),
        ("dead", "deadline", 1),
        ("dead", "exhausted", 1),
        ("dead", "permanent", 1),
        ("done", "", 1),
        ("leased", "", 1),
        ("pending", "", 1),
    ]


# The largest number of claims that is believed; a job that is claimed each millisecond has it
# after thirty years.
MOST_CLAIMS = 10**12


@pytest.mark.parametrize(
    ("token", "claims"),
    [
        (MOST_CLAIMS, MOST_CLAIMS),
        (MOST_CLAIMS + 1, 0),
        (2**63 - 1, 0),
        (-1, 0),
        (0.5, 0),
        (float("inf"), 0),
        (float("-inf"), 0),
        ("many", 0),
        (b"many", 0),
    ],
)
def test_token_that_is_none_stops_no_verb(con: sqlite3.Connection, token: Any, claims: int):
    """What somebody has written into a token makes no trigger fail, and no sum wrong."""
    for seq in (1, 2, BLOCK, 40 * BLOCK):
        put_dead(con, id=f"odd-{seq}", seq=seq, token=token, status="done", reason=None)
    for _ in range(2):
        calm(con)
        assert jobs.stats(con)["claims"] == 4 * claims
        assert jobs.tally_check(con) == []
        con.execute("UPDATE jobs SET token = token WHERE seq < 3")
    jobs.tally_rebuild(con)
    assert jobs.stats(con)["claims"] == 4 * claims
    con.executescript(migration("queue_0004_tally.rollback"))
    assert jobs.stats(con)["claims"] == 4 * claims


# What it costs.


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_stats_are_flat(con: sqlite3.Connection, shape: list[tuple[str, int, int | None]]):
    """Among 40 000 jobs of any shape they run hardly more than among 1 000."""
    costs = []
    for size in (1_000, 40_000):
        con.execute("DELETE FROM jobs")
        fill(con, shape, size)
        costs.append(instructions(con, lambda: jobs.stats(con)))

    assert costs[1] < costs[0] * 1.5


def test_stats_write_nothing(quiet: sqlite3.Connection, queue_path: Path):
    """They may be asked for by anybody at any time."""
    put_pending(quiet, id="busy", seq=2)
    with unchanged(quiet, queue_path):
        assert jobs.stats(quiet)["jobs"] == 5


def test_changes_in_a_busy_block_write_no_page_here(con: sqlite3.Connection):
    """Only the first change of a block writes the tally."""
    put_pending(con, id="first", seq=100)
    put_pending(con, id="second", seq=101)
    before = con.execute("SELECT * FROM tally_totals").fetchall(), busy(con)
    ticket = jobs.claim(con, "w", NOW)

    # The page of the job, and the first one, which counts the changes of the file.
    assert written(con, lambda: jobs.finish(con, ticket, "ok", NOW)) == 2
    assert (con.execute("SELECT * FROM tally_totals").fetchall(), busy(con)) == before


# A file without the tally.


def test_stats_of_the_bare_tables(queue_path: Path):
    """In a file that `open_queue` has never seen every job is counted."""
    with closing(bare_file(queue_path)) as con:
        assert jobs.stats(con) == shadow.stats(con)
        put_pending(con, id="a", token=2)
        put_pending(con, id="later", available_at=NOW + 5)
        put_leased(con, id="held", lease_until=NOW + 1)
        put_dead(con, id="b", reason="permanent")
        put_dead(con, id="c", reason="of another kind")
        put_dead(con, id="done", status="done", reason=None)

        assert jobs.stats(con) == shadow.stats(con)


def test_opening_counts_what_is_there(queue_path: Path):
    """A file with jobs in it gets its tally in the transaction that brings it up to date."""
    with closing(bare_file(queue_path)) as con:
        fill(con, SHAPES["mixed"], 1000)
        put_dead(con, id="dead", reason="exhausted")
    with closing(open_queue(queue_path)) as con:
        assert busy(con) == []
        assert jobs.stats(con)["jobs"] == 1001
        assert is_exact(con)


def test_rollback_leaves_the_tree(con: sqlite3.Connection):
    """Without the tally the schema is that of the migration before, and stats count every job."""
    put_pending(con)
    expected = jobs.stats(con)
    con.executescript(migration("queue_0004_tally.rollback"))
    names = con.execute(
        "SELECT name FROM sqlite_schema WHERE name LIKE '%tally%' OR name = 'counted_jobs'"
    )

    assert names.fetchall() == []
    assert jobs.stats(con) == expected
    assert jobs.tree_check(con) == []


def test_stats_that_are_interrupted(con: sqlite3.Connection):
    """Only a missing tally makes stats count all jobs; any other error comes out."""
    con.set_progress_handler(lambda: 1, 1)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        jobs.stats(con)


# Its care.

FAULTS = {
    "UPDATE tally_totals SET jobs = jobs + 2 WHERE status = 'pending'": (
        "the total of jobs that are pending is off by 2, that of their claims by 0; "
        "rebuild the tally"
    ),
    "UPDATE tally_totals SET claims = claims - 1 WHERE reason = 'permanent'": (
        "the total of jobs that are dead (permanent) is off by 0, that of their claims by -1; "
        "rebuild the tally"
    ),
    "DELETE FROM tally_totals WHERE status = 'done'": (
        "the total of jobs that are done is off by -1, that of their claims by -11; "
        "rebuild the tally"
    ),
    "INSERT INTO tally_totals VALUES ('done', 'x', 1, 0)": (
        "the total of jobs that are done (x) is off by 1, that of their claims by 0; "
        "rebuild the tally"
    ),
}


@pytest.mark.parametrize(("damage", "report"), FAULTS.items(), ids=FAULTS)
def test_tally_rebuild_mends_what_tally_check_reports(
    quiet: sqlite3.Connection, damage: str, report: str
):
    """Every total that is off is one line that tells what to do, and doing it helps."""
    put_pending(quiet, id="busy", seq=300)
    assert jobs.tally_check(quiet) == []
    quiet.execute(damage)

    assert jobs.tally_check(quiet) == [report]
    jobs.tally_rebuild(quiet)
    assert busy(quiet) == []
    assert is_exact(quiet)


def test_tally_check_of_a_file_without_the_tally(queue_path: Path):
    """A bare file is not called sound."""
    with closing(bare_file(queue_path)) as con:
        assert jobs.tally_check(con) == [
            "the file lacks the migration queue_0004_tally; open_queue applies it"
        ]


def test_tally_rebuild_refuses_what_it_cannot_mend(con: sqlite3.Connection, queue_path: Path):
    """Without its triggers the tally would go wrong again: an error, and nothing changes."""
    put_pending(con)
    con.execute("DROP TRIGGER tally_deleted")

    with (
        unchanged(con, queue_path),
        pytest.raises(UnusableFile, match="the trigger tally_deleted is missing"),
    ):
        jobs.tally_rebuild(con)
