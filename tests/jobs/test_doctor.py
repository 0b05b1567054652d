"""doctor: each subject on both sides of its line, and that nothing is changed."""

import os
import sqlite3
from pathlib import Path

import pytest

from lease import WIDE, jobs
from lease.jobs import Finding, _doctor
from tests.support.processes import run_code
from tests.support.queue import NOW, put_dead, put_leased, put_pending, unchanged

SUBJECTS = ["sqlite", "journal", "integrity", "tree", "tally", "rights", "filesystem", "clock"]
SUBJECTS += ["leases", "overdue", "yoyo"]


def look(con: sqlite3.Connection, path: Path, subject: str, now_ms: int = NOW) -> tuple[bool, str]:
    """Return what the doctor finds of one subject."""
    (found,) = [each for each in jobs.doctor(con, path, now_ms) if each.subject == subject]
    return found.is_well, found.detail


def test_doctor_finds_a_new_queue_well(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Every subject is there, in order, and nothing is written."""
    monkeypatch.setattr(_doctor, "kind_of", lambda _path: "ext4")
    put_pending(con)
    put_leased(con, id="held")
    with unchanged(con, queue_path):
        found = jobs.doctor(con, queue_path, NOW)

    assert [each.subject for each in found] == SUBJECTS
    assert [each for each in found if not each.is_well] == []
    assert all(each.detail.isprintable() for each in found)


@pytest.mark.parametrize("now_ms", [True, -1, WIDE.max_now_ms + 1, "0"])
def test_doctor_refuses_what_is_no_instant(con: sqlite3.Connection, queue_path: Path, now_ms):
    """The clock's reading is checked before anything is looked at."""
    with pytest.raises(ValueError, match="now_ms must be"):
        jobs.doctor(con, queue_path, now_ms)


def test_doctor_opens_no_database(con: sqlite3.Connection, queue_path: Path):
    """A lock of this process outlasts the examination."""
    con.execute("BEGIN IMMEDIATE")
    jobs.doctor(con, queue_path, NOW)
    other = run_code(
        "import sqlite3, sys; con = sqlite3.connect(sys.argv[1], timeout=0);"
        "con.execute('BEGIN IMMEDIATE')",
        queue_path,
    )
    con.execute("ROLLBACK")

    assert "database is locked" in other.stderr


@pytest.mark.parametrize(
    ("mode", "faulty", "is_well", "says"),
    [
        ("delete", True, True, "do not use it with a write-ahead log"),
        ("wal", True, False, "may damage a file with a write-ahead log; use 3.51.3 or later"),
        ("delete", False, True, sqlite3.sqlite_version),
        ("wal", False, True, sqlite3.sqlite_version),
    ],
)
def test_doctor_knows_the_fault_of_sqlite(
    con: sqlite3.Connection,
    queue_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    faulty: bool,
    is_well: bool,
    says: str,
):
    """Only a file with a write-ahead log is in danger, and only by some versions."""
    monkeypatch.setattr(_doctor, "has_wal_reset_fault", lambda: faulty)
    con.execute(f"PRAGMA journal_mode = {mode}")

    well, detail = look(con, queue_path, "sqlite")

    assert well is is_well
    assert detail.startswith(sqlite3.sqlite_version)
    assert says in detail


@pytest.mark.parametrize(("mode", "is_well"), [("delete", True), ("wal", True), ("memory", False)])
def test_doctor_tells_the_journal(
    con: sqlite3.Connection, queue_path: Path, mode: str, is_well: bool
):
    """A queue has one of two modes."""
    con.execute(f"PRAGMA journal_mode = {mode}")

    well, detail = look(con, queue_path, "journal")

    assert well is is_well
    assert detail.startswith(mode)


def test_doctor_ends_early_on_damage(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What a damaged file says of its jobs is not asked for."""
    monkeypatch.setattr(_doctor, "integrity_check", lambda _con: ["page 4 is bad", "and 5"])

    found = jobs.doctor(con, queue_path, NOW)

    assert [each.subject for each in found] == [
        "sqlite",
        "journal",
        "integrity",
        "rights",
        "filesystem",
    ]
    assert found[2] == Finding("integrity", False, "page 4 is bad (and 1 more); go back to a copy")


def test_doctor_reports_a_tally_that_is_off(con: sqlite3.Connection, queue_path: Path):
    """Wrong counts are told by what they come to."""
    put_pending(con)
    con.execute("UPDATE tally_totals SET jobs = jobs + 1")

    well, detail = look(con, queue_path, "tally")
    assert not well
    assert detail.endswith("rebuild the tally; stats may be wrong")


def test_doctor_reports_the_tree_in_place_of_what_it_hides(
    con: sqlite3.Connection, queue_path: Path
):
    """By a tree that misleads nobody can tell what is due."""
    put_pending(con)
    con.execute("UPDATE tree_leaves SET ready_at = ?", (NOW + 1,))

    found = jobs.doctor(con, queue_path, NOW)

    assert [each.subject for each in found] == [each for each in SUBJECTS if each != "overdue"]
    assert not found[3].is_well
    assert found[3].detail.startswith("branch 0 has") or found[3].detail.startswith("leaf 0 has")
    assert found[3].detail.endswith("rebuild the tree; workers may pass jobs over")


@pytest.mark.parametrize(
    ("mode", "is_well"), [(0o600, True), (0o700, True), (0o640, False), (0o602, False)]
)
def test_doctor_tells_who_may_open_the_file(
    con: sqlite3.Connection, queue_path: Path, mode: int, is_well: bool
):
    """The group counts as others do."""
    queue_path.chmod(mode)

    well, detail = look(con, queue_path, "rights")

    assert well is is_well
    assert detail.startswith(f"{mode:o}: ")


@pytest.mark.parametrize(("kind", "is_well"), [("ext4", True), (None, True), ("nfs4", False)])
def test_doctor_tells_the_filesystem(
    con: sqlite3.Connection,
    queue_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str | None,
    is_well: bool,
):
    """A network's locks are not to be trusted; an unknown kind is only told."""
    monkeypatch.setattr(_doctor, "kind_of", lambda _path: kind)

    well, detail = look(con, queue_path, "filesystem")

    assert well is is_well
    assert detail.startswith(kind or "of a kind that the system does not tell")


def test_doctor_sees_a_clock_behind_the_newest_redrive(con: sqlite3.Connection, queue_path: Path):
    """The same instant is not behind; an older row's time does not matter."""
    for job_id, at_ms in (("a", NOW + 900), ("b", NOW + 5)):
        put_dead(con, id=job_id)
        jobs.redrive(con, job_id, at_ms, 1000, "fixed")

    assert look(con, queue_path, "clock", NOW + 5)[0]
    assert look(con, queue_path, "clock", NOW + 4) == (
        False,
        "1 ms behind the newest redrive; set it right, or wait that long",
    )


def test_doctor_bears_a_redrive_without_an_instant(con: sqlite3.Connection, queue_path: Path):
    """An outsider's text is later than nothing."""
    con.execute("INSERT INTO redrives (id, token, at_ms, note) VALUES ('a', 1, 'soon', 'n')")

    assert look(con, queue_path, "clock")[0]


@pytest.mark.parametrize(
    ("lease_until", "is_well"),
    [(NOW + WIDE.max_lease_ms, True), (NOW + WIDE.max_lease_ms + 1, False), (None, False)],
)
def test_doctor_sees_leases_that_do_not_end(
    con: sqlite3.Connection, queue_path: Path, lease_until: int | None, is_well: bool
):
    """A lease may be as long as the longest, from now."""
    put_leased(con, lease_until=lease_until)
    put_dead(con, id="dead", lease_until=None)

    well, detail = look(con, queue_path, "leases")

    assert well is is_well
    assert is_well or detail.startswith("1 end later than any lease may, or never;")


def test_doctor_sees_what_nobody_takes(con: sqlite3.Connection, queue_path: Path):
    """A job that is due for just as long as is borne is not yet overdue."""
    assert look(con, queue_path, "overdue", NOW + 10 * _doctor.OVERDUE_MS)[0]
    put_pending(con, deadline=NOW + 10 * _doctor.OVERDUE_MS)

    assert look(con, queue_path, "overdue", NOW + _doctor.OVERDUE_MS)[0]
    assert look(con, queue_path, "overdue", NOW + _doctor.OVERDUE_MS + 1) == (
        False,
        "a job has been due for 600 s; is a worker running?",
    )


@pytest.mark.parametrize(
    ("pid", "is_well", "says"),
    [
        (None, True, "no lock that would hold up its commands"),
        (os.getpid(), True, f"process {os.getpid()} is at work on the schema"),
        (2**22 + 1, False, "process 4194305 is gone and has left its lock; remove it with yoyo"),
        ("../etc", False, "process '../etc' is gone"),
    ],
    ids=["no lock", "of a living process", "of a dead process", "of no process"],
)
def test_doctor_sees_a_lock_that_yoyo_left(
    con: sqlite3.Connection, queue_path: Path, pid: object, is_well: bool, says: str
):
    """A killed command leaves its row, a running one is at work, most have left nothing."""
    con.execute("CREATE TABLE yoyo_lock (locked INT PRIMARY KEY, ctime TIMESTAMP, pid)")
    if pid is not None:
        con.execute("INSERT INTO yoyo_lock VALUES (1, '2026-01-01', ?)", (pid,))

    well, detail = look(con, queue_path, "yoyo")

    assert well is is_well
    assert detail.startswith(says)
