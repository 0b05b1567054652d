"""`lease doctor` and `backup`: what they print, and the exit code."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from lease import jobs as verbs
from lease.cli import care
from lease.jobs import _doctor
from tests.support.cli import lease
from tests.support.queue import NOW, committed, put_dead, put_leased, put_pending

WELL = f"""\
well  sqlite      {sqlite3.sqlite_version}
well  journal     delete: one file, readable by any SQLite
well  integrity   every page can be read
well  tree        no job is hidden from a claim
well  tally       stats count every job once
well  rights      600: its user's alone
well  filesystem  ext4
well  clock       not behind the newest redrive
well  leases      none ends later than a lease may
well  overdue     no job has been due for 600 s
well  yoyo        no lock that would hold up its commands
"""


@pytest.fixture(autouse=True)
def _machine() -> Iterator[None]:
    """Let every command run at the same moment, on a disk and an SQLite that are well."""
    with (
        patch.object(care, "wall_ms", lambda: NOW),
        patch.object(_doctor, "kind_of", lambda _path: "ext4"),
        patch.object(_doctor, "has_wal_reset_fault", lambda: False),
    ):
        yield


def test_doctor_prints_what_is_well(con: sqlite3.Connection, queue_path: Path) -> None:
    """A line a subject, aligned, and the exit code of success."""
    assert lease("doctor", queue_path) == (0, WELL, "")


def test_doctor_prints_what_to_look_at(con: sqlite3.Connection, queue_path: Path) -> None:
    """One subject is enough for the exit code of a failure; stderr stays empty."""
    queue_path.chmod(0o644)

    assert lease("doctor", queue_path) == (
        1,
        WELL.replace(
            "well  rights      600: its user's alone",
            "look  rights      644: open to other users; chmod it to 600",
        ),
        "",
    )


def test_doctor_prints_json_lines(con: sqlite3.Connection, queue_path: Path) -> None:
    """A line is a finding, under fixed keys."""
    put_leased(con, lease_until=None)

    ran = lease("doctor", queue_path, "--json")

    assert (ran.code, ran.err) == (1, "")
    assert len(ran.json_lines) == 11
    assert ran.json_lines[5] == {
        "subject": "rights",
        "is_well": True,
        "detail": "600: its user's alone",
    }
    assert [each["subject"] for each in ran.json_lines if not each["is_well"]] == ["leases"]


def test_doctor_prints_nothing_that_steers_a_terminal(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """What a file holds is shown, not obeyed."""
    with patch.object(_doctor, "integrity_check", lambda _con: ["\x1b[2J"]):
        ran = lease("doctor", queue_path)

    assert ran.code == 1
    assert "look  integrity   \\x1b[2J; go back to a copy" in ran.out


@pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")
def test_doctor_keeps_a_write_ahead_log(con: sqlite3.Connection, queue_path: Path) -> None:
    """The journal mode is told and left alone."""
    con.execute("PRAGMA journal_mode = WAL")

    assert "well  journal     wal: the files" in lease("doctor", queue_path).out
    assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("words", [("doctor",), ("backup", "DEST")])
def test_a_missing_queue_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Neither command makes a queue, nor a copy of none."""
    command, *rest = words
    ran = lease(command, tmp_path / "none.db", *(tmp_path / each for each in rest))

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"lease: there is no queue file at {tmp_path}/none.db; create it")
    assert list(tmp_path.iterdir()) == []


def fill(con: sqlite3.Connection) -> None:
    put_pending(con, id="a")
    put_leased(con, id="b")
    put_dead(con, id="c", status="done", reason=None)
    put_dead(con, id="d")


def test_backup_prints_what_was_copied(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """The copy has what the line says."""
    fill(con)
    copy = tmp_path / "copy.db"

    ran = lease("backup", queue_path, copy)

    assert ran == (
        0,
        (
            f"{copy} holds 4 jobs (1 pending, 1 leased, 1 done, 1 dead) and 0 redrives in "
            f"{copy.stat().st_size} bytes\n"
        ),
        "",
    )
    assert committed(copy) == committed(queue_path)


def test_backup_prints_json(con: sqlite3.Connection, queue_path: Path, tmp_path: Path) -> None:
    """The keys are those of stats, and where and how large the copy is."""
    fill(con)
    copy = tmp_path / "copy.db"

    ran = lease("backup", queue_path, copy, "--json")

    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {"path": str(copy), "bytes": copy.stat().st_size, **verbs.stats(con)}


def test_backup_overwrites_nothing(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """Not even the queue itself."""
    for there in (queue_path, tmp_path / "copy.db"):
        there.touch()
        before = there.stat()
        assert lease("backup", queue_path, there) == (
            1,
            "",
            f"lease: {there}, or a journal beside it, exists; name a new file\n",
        )
        assert (there.stat().st_size, there.stat().st_mtime_ns) == (
            before.st_size,
            before.st_mtime_ns,
        )


def test_backup_tells_a_place_that_cannot_be_used(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """The copy's path is blamed, not the queue's."""
    assert lease("backup", queue_path, tmp_path / "none" / "copy.db") == (
        1,
        "",
        f"lease: {tmp_path}/none/copy.db cannot be made: No such file or directory\n",
    )
    assert lease("backup", queue_path, "").code == 2


@pytest.mark.parametrize(
    ("code", "blamed", "says"),
    [
        (sqlite3.SQLITE_BUSY, "queue.db", "is locked by another process; try again when"),
        (sqlite3.SQLITE_FULL, "copy.db", "cannot grow: the disk is full; make room"),
        (sqlite3.SQLITE_IOERR, "copy.db", "cannot be read or written; check its disk"),
    ],
)
def test_backup_blames_the_file_at_fault(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path, code: int, blamed: str, says: str
) -> None:
    """A lock is the queue's; what happens while writing is the copy's."""
    error = sqlite3.OperationalError("no")
    error.sqlite_errorcode = code
    with patch.object(verbs, "backup", side_effect=error):
        ran = lease("backup", queue_path, tmp_path / "copy.db")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"lease: {tmp_path}/{blamed} {says}")


def test_backup_tells_a_queue_that_is_not_sound(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """The queue is named, what is wrong with it, and no copy is left."""
    put_pending(con)
    con.execute("UPDATE tree_leaves SET ready_at = ?", (NOW + 1,))

    ran = lease("backup", queue_path, tmp_path / "copy.db")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"lease: {queue_path}: the copy's tree is as faulty")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")
def test_backup_keeps_a_write_ahead_log(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """The queue keeps its log; its copy has none."""
    con.execute("PRAGMA journal_mode = WAL")
    fill(con)

    assert lease("backup", queue_path, tmp_path / "copy.db").code == 0
    assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)
