"""backup: a sound copy of one moment, of a queue at work, or none at all."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lease import UnusableFile, jobs
from lease.jobs import _backup
from tests.support.processes import run_code
from tests.support.queue import (
    DEADLINE,
    NOW,
    committed,
    descriptors,
    put_dead,
    put_leased,
    put_pending,
    reading,
    unchanged,
    without_waiting,
)

JOBS = 2000


@pytest.fixture
def copy_path(tmp_path: Path) -> Path:
    """A path in a folder of its own, at which no file is yet."""
    (tmp_path / "copies").mkdir()
    return tmp_path / "copies" / "copy.db"


def fill(con: sqlite3.Connection) -> None:
    """Put a job of each kind into a queue, and an audit row."""
    put_pending(con, id="pending")
    put_leased(con, id="leased")
    put_dead(con, id="done", status="done")
    put_dead(con, id="revived")
    jobs.redrive(con, "revived", NOW, DEADLINE, "fixed")


@pytest.fixture
def large(con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A queue that takes many steps to copy."""
    monkeypatch.setattr(_backup, "_STEP_PAGES", 4)
    events = [{"id": f"{number:032}", "qty": 1} for number in range(JOBS)]
    jobs.enqueue_many(con, events, NOW, DEADLINE)
    return con


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_backup_is_one_private_file_with_every_row(
    con: sqlite3.Connection, queue_path: Path, copy_path: Path, mode: str
):
    """The copy has the rows and the journal mode DELETE, whatever the original's; that stays."""
    con.execute(f"PRAGMA journal_mode = {mode}")
    fill(con)
    with unchanged(con, queue_path):
        counted = jobs.backup(con, copy_path)

    assert list(copy_path.parent.iterdir()) == [copy_path]
    assert copy_path.stat().st_mode & 0o777 == 0o600
    assert copy_path.read_bytes()[18:20] == b"\x01\x01"
    assert committed(copy_path) == committed(queue_path)
    assert counted == jobs.stats(con)
    assert counted["jobs"] == 4
    assert counted["redrives"] == 1
    assert con.execute("PRAGMA journal_mode").fetchone() == (mode,)


def test_backup_is_a_queue_that_goes_on(con: sqlite3.Connection, copy_path: Path):
    """A restored lease ends by itself, and its job is claimed with the next token."""
    row = put_leased(con, deadline=NOW + 9000)
    jobs.backup(con, copy_path)

    with closing(jobs.open_queue(copy_path, create=False)) as restored:
        assert jobs.claim(restored, "w", row["lease_until"] - 1) is None
        ticket = jobs.claim(restored, "w", row["lease_until"])

    assert ticket is not None
    assert ticket["token"] == row["token"] + 1


def test_backup_keeps_the_locks_of_this_process(
    con: sqlite3.Connection, queue_path: Path, copy_path: Path
):
    """Another connection's write lock outlasts the copy, and holds it up as little."""
    with closing(sqlite3.connect(queue_path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        jobs.backup(con, copy_path)
        other = run_code(
            "import sqlite3, sys; con = sqlite3.connect(sys.argv[1], timeout=0);"
            "con.execute('BEGIN IMMEDIATE')",
            queue_path,
        )

    assert "database is locked" in other.stderr
    assert descriptors(copy_path.parent) == []


@pytest.mark.parametrize("beside", ["", "-journal", "-wal", "-shm"])
def test_backup_refuses_what_is_there(con: sqlite3.Connection, copy_path: Path, beside: str):
    """Neither a file nor a journal that would be played back into the copy; both stay."""
    there = copy_path.with_name(copy_path.name + beside)
    there.write_bytes(b"precious")

    with pytest.raises(FileExistsError):
        jobs.backup(con, copy_path)

    assert list(copy_path.parent.iterdir()) == [there]
    assert there.read_bytes() == b"precious"


def test_backup_refuses_a_link(con: sqlite3.Connection, copy_path: Path):
    """A link that only promises a file is not followed."""
    copy_path.symlink_to(copy_path.with_name("elsewhere.db"))

    with pytest.raises(FileExistsError):
        jobs.backup(con, copy_path)

    assert list(copy_path.parent.iterdir()) == [copy_path]


def test_backup_refuses_a_folder_that_is_not_there(con: sqlite3.Connection, tmp_path: Path):
    """No folder is made."""
    with pytest.raises(FileNotFoundError):
        jobs.backup(con, tmp_path / "none" / "copy.db")


def test_backup_refuses_a_connection_in_a_transaction(con: sqlite3.Connection, copy_path: Path):
    """What is not committed does not belong into a copy."""
    con.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        jobs.backup(con, copy_path)
    con.execute("ROLLBACK")

    assert not copy_path.exists()


def test_backup_leaves_no_damaged_copy(
    con: sqlite3.Connection, copy_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Damage that was copied is told, and the copy is removed."""
    monkeypatch.setattr(_backup, "integrity_check", lambda _con: ["page 4 is bad"])

    with pytest.raises(UnusableFile, match="damaged as the file itself is: page 4 is bad; go"):
        jobs.backup(con, copy_path)

    assert list(copy_path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "advice"),
    [
        ("UPDATE tree_leaves SET ready_at = ?", "rebuild the tree"),
        ("UPDATE tally_totals SET jobs = ?", "rebuild the tally"),
    ],
)
def test_backup_leaves_no_copy_with_a_faulty_tree_or_tally(
    con: sqlite3.Connection, copy_path: Path, damage: str, advice: str
):
    """A copy that would hide jobs is none."""
    put_pending(con)
    con.execute(damage, (NOW + 1,))

    with pytest.raises(UnusableFile, match=f"as faulty as .* {advice}"):
        jobs.backup(con, copy_path)

    assert list(copy_path.parent.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_backup_that_ends_early_leaves_nothing(
    con: sqlite3.Connection,
    copy_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
):
    """An interrupt, or a disk that fails to the very end, leaves no half of a copy."""

    def fail(_folder: int) -> None:
        raise error

    monkeypatch.setattr(_backup.os, "fsync", fail)

    with pytest.raises(error):
        jobs.backup(con, copy_path)

    assert list(copy_path.parent.iterdir()) == []
    assert descriptors(copy_path.parent) == []


# A queue at work.


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[tuple[int, int]]]]:
    """Return a function that has something done after each step, and gives the steps made."""
    watch = _backup._Watch.__call__

    def start(act: Callable[[], object]) -> list[tuple[int, int]]:
        steps: list[tuple[int, int]] = []

        def called(self: _backup._Watch, status: int, remaining: int, total: int) -> None:
            steps.append((status, remaining))
            watch(self, status, remaining, total)
            act()

        monkeypatch.setattr(_backup._Watch, "__call__", called)
        return steps

    return start


def test_backup_lets_writers_in_between_its_steps(
    large: sqlite3.Connection, queue_path: Path, copy_path: Path, meddle
):
    """A change in between begins the copy anew, and is in it."""
    with closing(jobs.open_queue(queue_path)) as writer:
        without_waiting(writer)

        def write_twice() -> None:
            if len(steps) in (1, 3):
                put_pending(writer, id=f"late-{len(steps)}")

        steps = meddle(write_twice)
        counted = jobs.backup(large, copy_path)

    assert len(steps) > 6
    assert counted["jobs"] == JOBS + 2
    assert committed(copy_path) == committed(queue_path)


def test_backup_of_a_queue_that_never_rests_ends(
    large: sqlite3.Connection, queue_path: Path, copy_path: Path, meddle
):
    """After three beginnings the rest waits for one copy in one step."""
    with closing(jobs.open_queue(queue_path)) as writer:
        without_waiting(writer)
        steps = meddle(lambda: put_pending(writer, id=f"late-{len(steps)}"))
        counted = jobs.backup(large, copy_path)

    assert steps[-1] == (sqlite3.SQLITE_DONE, 0)
    assert len(steps) == 5
    assert counted["jobs"] == JOBS + 3
    assert list(copy_path.parent.iterdir()) == [copy_path]


def test_backup_of_a_write_ahead_log_is_one_step(
    large: sqlite3.Connection, queue_path: Path, copy_path: Path, meddle
):
    """Its readers are in nobody's way, and no change makes it begin anew."""
    large.execute("PRAGMA journal_mode = WAL")
    steps = meddle(lambda: None)

    assert jobs.backup(large, copy_path)["jobs"] == JOBS
    assert steps == [(sqlite3.SQLITE_DONE, 0)]


def test_backup_waits_for_a_lock_and_goes_on(
    large: sqlite3.Connection, queue_path: Path, copy_path: Path, meddle
):
    """A refused step is no change of the file, however often between others."""
    without_waiting(large)
    with closing(sqlite3.connect(queue_path, isolation_level=None)) as writer:

        def take_turns() -> None:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            elif steps[-1][0] == sqlite3.SQLITE_OK:
                writer.execute("BEGIN EXCLUSIVE")

        writer.execute("BEGIN EXCLUSIVE")
        steps = meddle(take_turns)
        counted = jobs.backup(large, copy_path)

    refused = [status for status, _ in steps].count(sqlite3.SQLITE_BUSY)
    assert refused > 3
    assert counted["jobs"] == JOBS


def test_backup_gives_up_on_a_lock_that_stays(
    con: sqlite3.Connection, queue_path: Path, copy_path: Path, meddle, monkeypatch
):
    """It ends with SQLite's own error, after as many tries as are borne."""
    without_waiting(con)
    monkeypatch.setattr(_backup, "_PAUSE_S", 0)
    steps = meddle(lambda: None)
    with closing(sqlite3.connect(queue_path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught:
            jobs.backup(con, copy_path)

    assert caught.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
    assert len(steps) == _backup._MAX_REFUSALS
    assert list(copy_path.parent.iterdir()) == []


def test_backup_goes_past_readers(con: sqlite3.Connection, queue_path: Path, copy_path: Path):
    """Whoever only reads is not waited for."""
    without_waiting(con)
    put_pending(con)
    with reading(queue_path):
        assert jobs.backup(con, copy_path)["pending"] == 1
