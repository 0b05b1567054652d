"""open_queue with a journal mode: what comes into force, who is in the way, the warning."""

import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import UnusableFile, jobs, worker
from lease.db import durability
from lease.db.durability import has_wal_reset_fault
from lease.dispatcher import Dispatcher
from lease.errors import WalResetWarning
from lease.jobs import claim, enqueue, finish, open_queue
from tests.support.cli import lease
from tests.support.layouts import PACKAGE
from tests.support.queue import NOW, content, put_pending, reading

quiet = pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")


@pytest.fixture(autouse=True)
def _warned_anew() -> Iterator[None]:
    """Each test is a process of its own, as far as the warning goes."""
    durability._warn_of_wal_reset.cache_clear()
    yield
    durability._warn_of_wal_reset.cache_clear()


def settings(con: sqlite3.Connection) -> tuple[str, int]:
    """Read what is in force."""
    (mode,) = con.execute("PRAGMA journal_mode").fetchone()
    (level,) = con.execute("PRAGMA synchronous").fetchone()
    return mode, level


def mode_of(path: Path) -> str:
    """Read the journal mode of a file by a plain connection."""
    with closing(sqlite3.connect(path)) as con:
        (mode,) = con.execute("PRAGMA journal_mode").fetchone()
        return mode


def make(path: Path, mode: str) -> None:
    """Make a queue with a job in it, in a journal mode."""
    with closing(worker.open_queue(path)) as con:
        put_pending(con)
        con.execute(f"PRAGMA journal_mode = {mode}")


@quiet
@pytest.mark.parametrize("before", [None, "delete", "wal"])
@pytest.mark.parametrize(
    ("asked", "kept"),
    [({}, "delete"), ({"journal_mode": "delete"}, "delete"), ({"journal_mode": "wal"}, "wal")],
    ids=["default", "delete", "wal"],
)
def test_open_queue_puts_in_force(
    queue_path: Path, before: str | None, asked: dict[str, Any], kept: str
) -> None:
    """Whatever a file had, if there was one, it has the mode asked for and FULL."""
    if before:
        make(queue_path, before)

    with closing(open_queue(queue_path, **asked)) as con:
        assert settings(con) == (kept, 2)
        assert con.execute("SELECT count(*) FROM jobs").fetchone() == (1 if before else 0,)
    assert mode_of(queue_path) == kept


@quiet
@pytest.mark.parametrize("before", [None, "delete", "wal"])
def test_open_queue_keeps_the_mode_of_the_file(queue_path: Path, before: str | None) -> None:
    """None leaves a file as it is, and makes a new one with a rollback journal."""
    if before:
        make(queue_path, before)

    with closing(open_queue(queue_path, journal_mode=None)) as con:
        assert settings(con) == (before or "delete", 2)


def test_the_contracts_open_queue_leaves_the_log(queue_path: Path) -> None:
    """The contract's function sets DELETE, as it says, whatever the file had."""
    make(queue_path, "wal")

    with closing(worker.open_queue(queue_path)) as con:
        assert settings(con) == ("delete", 2)


@pytest.mark.parametrize("mode", ["DELETE", "WAL", "off", "memory", "", b"wal", True, 1, ["wal"]])
def test_open_queue_refuses_another_mode(queue_path: Path, mode: Any) -> None:
    """Only the two durable modes have a name here; no file is made."""
    with pytest.raises(ValueError, match=r"^journal_mode must be 'delete', 'wal' or None"):
        open_queue(queue_path, journal_mode=mode)
    assert not queue_path.exists()


@quiet
@pytest.mark.parametrize("open_again", [open_queue, worker.open_queue])
def test_open_queue_leaves_a_log_in_use(queue_path: Path, open_again: Any) -> None:
    """Others who work with a write-ahead log are not robbed of it: one clear line, no change."""
    with closing(open_queue(queue_path, journal_mode="wal")) as con:
        put_pending(con)
        with pytest.raises(UnusableFile) as caught:
            open_again(queue_path)

        assert str(caught.value) == (
            "others have the file open with journal_mode=wal, which keeps it from delete; "
            "close them first, or open it with theirs"
        )
        assert claim(con, "w", NOW)["id"] == "job-1"
        with closing(open_queue(queue_path, journal_mode=None)) as tool:
            assert settings(tool) == ("wal", 2)


@quiet
def test_open_queue_waits_for_no_writer_to_switch(queue_path: Path) -> None:
    """A file in somebody's transaction is not switched."""
    make(queue_path, "delete")
    with closing(sqlite3.connect(queue_path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnusableFile, match="journal_mode=delete, which keeps it from wal"):
            open_queue(queue_path, journal_mode="wal")
    assert mode_of(queue_path) == "delete"


@quiet
def test_open_queue_switches_under_an_idle_user(queue_path: Path) -> None:
    """Who has the file open, but is in no transaction, goes on with the log and loses nothing."""
    with closing(open_queue(queue_path)) as idle:
        put_pending(idle)
        with closing(open_queue(queue_path, journal_mode="wal")) as con:
            enqueue(con, {"id": "job-2", "qty": 1}, NOW, 1000)
            tickets = [claim(idle, "w", NOW), claim(con, "w", NOW)]

            assert [each and each["id"] for each in tickets] == ["job-1", "job-2"]
            assert settings(idle) == ("wal", 2)


def test_open_queue_reports_a_lock_as_a_lock(queue_path: Path) -> None:
    """A file that somebody keeps to himself is locked, which no mode would help."""
    make(queue_path, "delete")
    with closing(sqlite3.connect(queue_path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            open_queue(queue_path)


def test_open_queue_passes_other_errors_on(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a busy file is told as one."""
    make(queue_path, "delete")
    wrong = durability.DURABILITY_WAL._replace(sql="SELECT missing;")
    monkeypatch.setitem(durability._JOURNAL, "wal", wrong)

    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        open_queue(queue_path, journal_mode="wal")


def test_switch_that_another_made_first_is_one(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two who switch at once both have what they asked for."""
    make(queue_path, "wal")
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY

    class Beaten:
        def one(self, con: sqlite3.Connection) -> None:
            raise busy

    monkeypatch.setitem(durability._JOURNAL, "wal", Beaten())
    with closing(sqlite3.connect(queue_path, isolation_level=None)) as con:
        assert durability.make_durable(con, "wal") == "wal"


@quiet
def test_no_change_writes_nothing_into_the_log(queue_path: Path) -> None:
    """An empty claim, a refused finish and a repeated intake leave file and log as they were."""
    log = Path(f"{queue_path}-wal")
    with closing(open_queue(queue_path, journal_mode="wal")) as con:
        enqueue(con, {"id": "job-1", "qty": 1}, NOW, 1000)
        ticket = claim(con, "w", NOW)
        before = content(queue_path), content(log)
        assert claim(con, "w", NOW) is None
        assert finish(con, ticket | {"token": 9}, "ok", NOW) is False
        assert enqueue(con, {"id": "job-1", "qty": 1}, NOW, 1000) is False

        assert (content(queue_path), content(log)) == before


@quiet
def test_reader_does_not_hold_up_a_commit(queue_path: Path) -> None:
    """With the log a claim commits while somebody reads, who goes on seeing what was before."""
    with closing(open_queue(queue_path, journal_mode="wal")) as con:
        put_pending(con)
        with reading(queue_path):
            assert claim(con, "w", NOW)["id"] == "job-1"


@quiet
def test_log_is_as_private_as_the_file(queue_path: Path) -> None:
    """The files beside a new queue are for its user alone, as the queue is."""
    with closing(open_queue(queue_path, journal_mode="wal")) as con:
        put_pending(con)
        modes = {os.stat(f"{queue_path}{end}").st_mode & 0o777 for end in ("", "-wal", "-shm")}

    assert modes == {0o600}


@quiet
def test_killed_worker_leaves_its_commits_in_the_log(queue_path: Path) -> None:
    """What was committed before a kill is there for the next who opens the file, in its mode."""
    code = """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from lease import jobs
        con = jobs.open_queue(sys.argv[1], journal_mode="wal")
        jobs.enqueue(con, {"id": "job-1", "qty": 1}, 0, 1000)
        jobs.claim(con, "w", 0, 10, lambda at: os._exit(9) if at == sys.argv[2] else None)
    """
    lines = "\n".join(line.strip() for line in code.splitlines())
    for boundary, status in (("after-claim", "pending"), ("after-commit", "leased")):
        path = queue_path.with_suffix(f".{boundary}")
        run = subprocess.run(
            [sys.executable, "-c", lines, path, boundary],
            check=False,
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        )
        assert run.returncode == 9

        with closing(open_queue(path, journal_mode=None)) as con:
            assert settings(con) == ("wal", 2)
            assert con.execute("SELECT status FROM jobs").fetchall() == [(status,)]


@quiet
def test_workers_and_commands_keep_the_log(queue_path: Path) -> None:
    """Neither a worker nor a command that looks at a queue takes its log away."""
    make(queue_path, "wal")

    Dispatcher(queue_path, lambda _event: True, owner="w", clock=lambda: NOW).run("drained")
    assert mode_of(queue_path) == "wal"
    for command in (["init"], ["stats"], ["jobs"]):
        assert lease(*command, queue_path).code == 0
        assert mode_of(queue_path) == "wal"


# The fault of SQLite.


@pytest.mark.parametrize(
    ("version", "faulty"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 35, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 44, 7), False),
        ((3, 45, 0), True),
        ((3, 49, 9), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 0), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
        ((3, 53, 0), False),
        ((4, 0, 0), False),
    ],
)
def test_wal_reset_fault(version: tuple[int, int, int], *, faulty: bool) -> None:
    """The fault is in every release since logs came, up to the mended ones of each series."""
    assert has_wal_reset_fault(version) is faulty


def as_if(monkeypatch: pytest.MonkeyPatch, *, faulty: bool) -> None:
    """Pretend that this SQLite has the fault, or has not."""
    monkeypatch.setattr(durability, "has_wal_reset_fault", lambda: faulty)


@pytest.mark.parametrize("asked", ["wal", None])
def test_open_queue_warns_once_of_the_fault(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any
) -> None:
    """The first log that a process opens or keeps is the occasion, in its caller's line."""
    as_if(monkeypatch, faulty=True)
    make(queue_path, "wal")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            jobs.open_queue(queue_path, journal_mode=asked).close()

    (warning,) = seen
    assert warning.category is WalResetWarning
    assert warning.filename == __file__
    assert str(warning.message) == (
        f"SQLite {sqlite3.sqlite_version} may damage a file that has a write-ahead log, when one "
        "connection commits at the very instant another makes a checkpoint; use SQLite 3.51.3 or "
        "later (3.50.7 and 3.44.6 are mended too), or journal_mode='delete'"
    )


def test_open_queue_does_not_warn_without_cause(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mended SQLite, or a file without a log, gives no warning."""
    as_if(monkeypatch, faulty=True)
    open_queue(queue_path).close()
    open_queue(queue_path, journal_mode=None).close()
    as_if(monkeypatch, faulty=False)
    open_queue(queue_path, journal_mode="wal").close()


@pytest.mark.filterwarnings("error::lease.errors.WalResetWarning")
def test_warning_as_an_error_closes_the_file(
    queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who turns the warning into an error gets it each time, and no connection stays behind."""
    as_if(monkeypatch, faulty=True)
    for _ in range(2):
        with pytest.raises(WalResetWarning, match="may damage"):
            open_queue(queue_path, journal_mode="wal")
