"""Real processes that die at every commit boundary, and what the next one finds."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lease import claim, enqueue, finish, open_queue, redrive
from lease.db.connection import connect
from lease.db.migrations import missing
from tests.processes.children import NOW_MS
from tests.support.processes import Child

ENDS = {"exit": 7, "kill": -signal.SIGKILL}

how_to_die = pytest.mark.parametrize("how", ENDS)


def prepare(path: Path, *, dead: bool = False) -> None:
    """Make a queue of one job, pending or dead."""
    with closing(open_queue(path)) as con:
        enqueue(con, {"id": "a", "qty": 5}, NOW_MS - 100, 60_000, 2)
        if dead:
            finish(con, claim(con, "w", NOW_MS - 90), "permanent", NOW_MS - 80)


def rows(path: Path) -> tuple[list[tuple], list[tuple]]:
    """Read the queue with a connection of its own, once the file has proved sound."""
    with closing(open_queue(path)) as con:
        assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        jobs = con.execute("SELECT * FROM jobs").fetchall()
        redrives = con.execute("SELECT id, token, at_ms, note FROM redrives").fetchall()
    return jobs, redrives


def expected(path: Path, function: str) -> tuple[list[tuple], list[tuple]]:
    """Return what a queue holds after the same call has gone well."""
    twin = path.parent / "twin" / "queue.db"
    twin.parent.mkdir()
    prepare(twin, dead=function == "redrive_and_die")
    with closing(open_queue(twin)) as con:
        if function == "redrive_and_die":
            redrive(con, "a", NOW_MS, 1000, "note")
        else:
            ticket = claim(con, "w", NOW_MS)
        if function == "finish_and_die":
            finish(con, ticket, "ok", NOW_MS)
    return rows(twin)


@pytest.fixture
def dying() -> Iterator[list[Child]]:
    """The children of a test, closed afterwards."""
    started: list[Child] = []
    yield started
    for child in started:
        child.close()


def run(dying: list[Child], function: str, *arguments: str) -> int:
    """Run a child to its end, and return how it ended."""
    dying.append(Child(function, *arguments))
    return dying[-1].ended()


@how_to_die
@pytest.mark.parametrize(
    ("function", "point"),
    [
        ("claim_and_die", "after-claim"),
        ("redrive_and_die", "after-audit"),
        ("redrive_and_die", "after-redrive"),
    ],
)
def test_death_before_commit_undoes(
    queue_path: Path, dying: list[Child], function: str, point: str, how: str
):
    """A process that dies before its COMMIT has done nothing."""
    prepare(queue_path, dead=function == "redrive_and_die")
    before = rows(queue_path)

    assert run(dying, function, str(queue_path), point, how) == ENDS[how]
    assert rows(queue_path) == before


@how_to_die
def test_death_before_commit_keeps_claim(queue_path: Path, dying: list[Child], how: str):
    """A process that dies within its finish leaves the job leased, for the lease to run out."""
    prepare(queue_path)
    leased = expected(queue_path, "claim_and_die")

    assert run(dying, "finish_and_die", str(queue_path), "after-finish", how) == ENDS[how]
    assert rows(queue_path) == leased


@how_to_die
@pytest.mark.parametrize("function", ["claim_and_die", "finish_and_die", "redrive_and_die"])
def test_death_after_commit_preserves(
    queue_path: Path, dying: list[Child], function: str, how: str
):
    """A process that dies right after its COMMIT has done all of it."""
    prepare(queue_path, dead=function == "redrive_and_die")
    after = expected(queue_path, function)

    assert run(dying, function, str(queue_path), "after-commit", how) == ENDS[how]
    assert rows(queue_path) == after


@how_to_die
def test_death_while_sending_keeps_lease(queue_path: Path, dying: list[Child], how: str):
    """The job of a process that dies while it sends is another's once the lease has ended."""
    prepare(queue_path)

    assert run(dying, "send_and_die", str(queue_path), how) == ENDS[how]
    with closing(open_queue(queue_path)) as con:
        assert claim(con, "x", NOW_MS + 999) is None
        again = claim(con, "x", NOW_MS + 1000)
    assert (again["token"], again["attempt"], again["owner"]) == (2, 2, "x")


def test_death_with_half_written_file_is_undone(queue_path: Path, dying: list[Child]):
    """What a killed process had already written into the file is rolled back by the next one."""
    with closing(open_queue(queue_path)) as con:
        con.execute("BEGIN")
        con.executemany(
            "INSERT INTO jobs VALUES (NULL, ?, 1, 'pending', 0, 3, 0, 0, 60000, NULL, NULL, NULL)",
            [(f"job-{number}",) for number in range(3000)],
        )
        con.execute("COMMIT")
    before = queue_path.read_bytes()
    jobs = rows(queue_path)

    assert run(dying, "write_and_die", str(queue_path)) == -signal.SIGKILL
    assert queue_path.with_name("queue.db-journal").stat().st_size > 0
    assert queue_path.read_bytes() != before

    assert rows(queue_path) == jobs
    assert queue_path.read_bytes() == before
    assert not queue_path.with_name("queue.db-journal").exists()


def test_death_within_migration_leaves_all_or_nothing(tmp_path: Path, dying: list[Child]):
    """Whichever statement a migration run dies before, the file is untouched or complete."""
    codes = []
    dying.append(Child("migrate_and_die", str(tmp_path)))
    while not codes or codes[-1] == -signal.SIGKILL:
        codes.append(dying[-1].hear())
    assert dying[-1].ended() == 0

    assert codes[-1] == 0
    assert len(codes) > 20
    states = []
    for number in range(len(codes)):
        with closing(connect(tmp_path / str(number), create=False)) as con:
            assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            states.append(con.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
            lacking = missing(con, "queue")
            assert (lacking == []) is (states[-1] > 0)
    for number in {*range(0, len(codes), 10), len(codes) - 2, len(codes) - 1}:
        with closing(open_queue(tmp_path / str(number))) as con:
            assert missing(con, "queue") == []
            assert enqueue(con, {"id": "a", "qty": 1}, NOW_MS, 1000)
            assert claim(con, "w", NOW_MS)["token"] == 1
    # The last few statements, which set the durability, come after the commit.
    assert states == sorted(states)
    assert set(states) == {0, states[-1]}
    assert states[-1] > 0
    assert states.count(0) > 20


def test_survival_without_a_change(queue_path: Path, dying: list[Child]):
    """A claim of nothing reaches no hook, so that its process lives to its end."""
    assert run(dying, "claim_and_die", str(queue_path), "after-claim", "kill") == 0
    assert run(dying, "claim_and_die", str(queue_path), "after-commit", "kill") == 0
