"""Files that may not be read or written, a disk that is full, descriptors that are used up."""

import os
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lease import jobs
from lease.cli._failures import absence
from lease.inbox import open_inbox
from lease.outbox import open_outbox
from tests.support.hostile import (
    COMMANDS,
    ON_OUTBOX,
    ON_QUEUE,
    as_nobody,
    complaint,
    in_child,
    ran,
    shared_folder,
    warm,
)
from tests.support.queue import faults_beside

NOW = 1_000_000
FULL = sqlite3.SQLITE_FULL


def opener_of(command: str) -> Callable[[Path], sqlite3.Connection]:
    """Return what makes the file that a command works on."""
    if command.startswith("outbox"):
        return open_outbox
    return open_inbox if command == "receive" else jobs.open_queue


@pytest.mark.parametrize("command", COMMANDS)
def test_command_refuses_what_another_user_keeps_private(command: str):
    """Somebody else's file, or one that its owner has closed to himself, is one clear error."""
    with shared_folder() as folder:
        opener_of(command)(folder / "it.db").close()
        (folder / "it.db").chmod(0o600 if os.geteuid() == 0 else 0)
        said = as_nobody(lambda: complaint(ran(command, folder / "it.db")))
        assert "it.db cannot be opened; check its rights" in said


@pytest.mark.parametrize("command", [*ON_QUEUE, *ON_OUTBOX])
def test_command_tells_a_closed_folder_from_a_missing_file(command: str):
    """Nobody is sent to create what he may only not see."""
    with shared_folder() as folder:
        (folder / "closed").mkdir()
        opener_of(command)(folder / "closed" / "it.db").close()
        (folder / "closed").chmod(0o700 if os.geteuid() == 0 else 0)
        said = as_nobody(lambda: complaint(ran(command, folder / "closed" / "it.db")))
        (folder / "closed").chmod(0o700)
        assert "cannot be reached; check the rights" in said


def test_absence_tells_what_may_not_be_seen(monkeypatch: pytest.MonkeyPatch):
    """Whoever may not look does not say that nothing is there."""

    def refuse(_path: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        said = absence("q.db", "nothing there")
    assert said == "q.db cannot be reached; check the rights on its folder"


#: Those that write to a queue where they can.
WRITING = ["enqueue", "redrive", "work"]


def prepare(path: Path) -> bytes:
    """Make a queue with a dead job and one that is due, and return its bytes."""
    with closing(jobs.open_queue(path)) as con:
        for name in ("job-1", "job-2"):
            jobs.enqueue(con, {"id": name, "qty": 1}, NOW, 7_000_000_000_000_000 // 10**6)
        jobs.finish(con, jobs.claim(con, "w", NOW), "permanent", NOW)
    return path.read_bytes()


@pytest.mark.parametrize("command", WRITING)
def test_command_writes_nothing_in_a_folder_that_may_only_be_read(command: str):
    """Without a journal there is no change, and no attempt without one."""
    with shared_folder() as folder:
        (folder / "kept").mkdir()
        path = folder / "kept" / "it.db"
        before = prepare(path)
        path.chmod(0o666)
        path.parent.chmod(0o555)
        said = as_nobody(lambda: complaint(ran(command, path)))
        path.parent.chmod(0o755)
        assert "it.db" in said
        assert "rights" in said
        assert path.read_bytes() == before


@pytest.mark.parametrize("command", WRITING)
def test_command_writes_nothing_to_a_file_that_may_only_be_read(command: str):
    """The rights of the file decide."""
    with shared_folder() as folder:
        path = folder / "it.db"
        before = prepare(path)
        path.chmod(0o444)
        folder.chmod(0o777)
        said = as_nobody(lambda: complaint(ran(command, path)))
        assert "it.db may only be read; check the rights" in said
        assert path.read_bytes() == before


@pytest.mark.parametrize(("of_file", "of_folder"), [(0o444, 0o777), (0o666, 0o555)])
def test_receiver_does_not_start_where_it_could_accept_nothing(of_file: int, of_folder: int):
    """Rather than answer every event that it has failed."""
    with shared_folder() as folder:
        (folder / "kept").mkdir()
        path = folder / "kept" / "it.db"
        open_inbox(path).close()
        path.chmod(of_file)
        path.parent.chmod(of_folder)
        said = as_nobody(lambda: complaint(ran("receive", path)))
        path.parent.chmod(0o755)
        assert "it.db" in said
        assert "may only be read" in said


@pytest.mark.parametrize("command", ["stats", "jobs"])
def test_command_reads_what_may_only_be_read(command: str):
    """To look at a queue needs no right to write to it."""
    with shared_folder() as folder:
        prepare(folder / "it.db")
        (folder / "it.db").chmod(0o444)
        assert as_nobody(lambda: ran(command, folder / "it.db").code) == 0


def limited(kind: int, size: int, task: Callable[[], object]) -> object:
    """Run a task in a child that has only so much of a resource."""

    def limit() -> object:
        usual = resource.getrlimit(kind)
        resource.setrlimit(kind, (size, usual[1]))
        try:
            return task()
        finally:
            resource.setrlimit(kind, usual)

    return in_child(limit)


@pytest.mark.parametrize("size", [0, 512, 1500, 5000])
@pytest.mark.parametrize("command", [*WRITING, "init", "receive"])
def test_command_changes_nothing_on_a_full_disk(tmp_path: Path, command: str, size: int):
    """Wherever a write stops to fit, the change is taken back, and the next one succeeds."""
    path = tmp_path / "it.db"
    before = None
    if command in WRITING:
        prepare(path)
        with closing(sqlite3.connect(path)) as con:
            before = con.execute("SELECT * FROM jobs").fetchall()

    warm()
    limited(resource.RLIMIT_FSIZE, size, lambda: complaint(ran(command, path)))
    if before is None:
        opener_of(command)(path).close()
    else:
        with closing(jobs.open_queue(path)) as con:
            assert con.execute("SELECT * FROM jobs").fetchall() == before
            assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert jobs.redrive(con, "job-1", NOW, 1000, "n")


def test_verbs_change_nothing_on_a_full_disk(tmp_path: Path):
    """A file that cannot grow refuses a job whole, and takes it once there is room."""
    with closing(jobs.open_queue(tmp_path / "it.db")) as con:
        (pages,) = con.execute("PRAGMA page_count").fetchone()
        con.execute(f"PRAGMA max_page_count = {pages}")
        events = [{"id": f"job-{number}", "qty": 1} for number in range(1000)]
        with pytest.raises(sqlite3.OperationalError) as caught:
            jobs.enqueue_many(con, events, NOW, 1000)
        assert caught.value.sqlite_errorcode == FULL
        assert not con.in_transaction
        assert jobs.stats(con)["jobs"] == 0
        con.execute("PRAGMA max_page_count = 100000")
        assert set(jobs.enqueue_many(con, events, NOW, 1000)) == {"new"}
        assert faults_beside(con) == []


@pytest.mark.parametrize("spare", range(5))
@pytest.mark.parametrize("command", WRITING)
def test_command_changes_nothing_without_descriptors(tmp_path: Path, command: str, spare: int):
    """With too few descriptors it says one line, or has done its work."""
    path = tmp_path / "it.db"
    before = prepare(path)

    def task() -> list[object]:
        found = ran(command, path)
        return [found.code, found.err]

    warm()
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    code, err = limited(resource.RLIMIT_NOFILE, highest + spare, task)
    if code:
        assert err.startswith("lease: ") or command == "work"
        assert err.count("\n") == 1
    if code and command != "work":
        assert path.read_bytes() == before
    with closing(jobs.open_queue(path)) as con:
        assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert faults_beside(con) == []
