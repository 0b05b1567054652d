"""A queue as the tests of its verbs see it: rows put into a state, rows read back, hooks."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from lease import CONTRACT, WIDE, Limits, jobs, worker
from lease.jobs import _open

Job = dict[str, Any]


class Face(NamedTuple):
    """One set of verbs and the bounds that it must keep."""

    verbs: ModuleType
    limits: Limits


FACES = {"contract": Face(worker, CONTRACT), "wide": Face(jobs, WIDE)}

each_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES)

#: The contract's two tables, as somebody makes them by hand.
BARE_SCHEMA = """
CREATE TABLE jobs (seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE, qty INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('pending','leased','done','dead')),
  attempts INTEGER NOT NULL, max_attempts INTEGER NOT NULL, token INTEGER NOT NULL,
  available_at INTEGER NOT NULL, deadline INTEGER NOT NULL,
  owner TEXT, lease_until INTEGER, reason TEXT);
CREATE TABLE redrives (seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL, token INTEGER NOT NULL, at_ms INTEGER NOT NULL, note TEXT NOT NULL);
"""

#: The moment at which most tests act, and a deadline far from it.
NOW = 10_000
DEADLINE = 50_000

_PENDING: Job = {
    "id": "job-1",
    "qty": 7,
    "status": "pending",
    "attempts": 0,
    "max_attempts": 3,
    "token": 0,
    "available_at": NOW,
    "deadline": DEADLINE,
    "owner": None,
    "lease_until": None,
    "reason": None,
}
_LEASED: Job = _PENDING | {
    "status": "leased",
    "attempts": 1,
    "token": 4,
    "available_at": NOW - 500,
    "owner": "worker-a",
    "lease_until": NOW + 1000,
}
_DEAD: Job = _PENDING | {
    "status": "dead",
    "attempts": 3,
    "token": 5,
    "available_at": NOW - 500,
    "deadline": NOW - 1,
    "reason": "exhausted",
}


def put_pending(con: sqlite3.Connection, **columns: object) -> Job:
    """Insert a job that waits to be claimed; return its row."""
    return _put(con, _PENDING | columns)


def put_leased(con: sqlite3.Connection, **columns: object) -> Job:
    """Insert a job that `worker-a` holds until a second after NOW; return its row."""
    return _put(con, _LEASED | columns)


def put_dead(con: sqlite3.Connection, **columns: object) -> Job:
    """Insert a job in quarantine; return its row."""
    return _put(con, _DEAD | columns)


def _put(con: sqlite3.Connection, columns: Job) -> Job:
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    con.execute(f"INSERT INTO jobs ({names}) VALUES ({values})", columns)
    return job(con, columns["id"])


def ticket_of(row: Job) -> Job:
    """Return the ticket that the holder of a leased row has."""
    return {
        "id": row["id"],
        "qty": row["qty"],
        "owner": row["owner"],
        "token": row["token"],
        "attempt": row["attempts"],
        "lease_until": row["lease_until"],
    }


def all_jobs(con: sqlite3.Connection) -> list[Job]:
    """Return every job, oldest first."""
    return _rows(con, f"SELECT seq, {', '.join(_PENDING)} FROM jobs ORDER BY seq")


def job(con: sqlite3.Connection, job_id: str = "job-1") -> Job:
    """Return the one job of that id."""
    (row,) = [each for each in all_jobs(con) if each["id"] == job_id]
    return row


def audits(con: sqlite3.Connection) -> list[Job]:
    """Return every audit row, oldest first."""
    return _rows(con, "SELECT seq, id, token, at_ms, note FROM redrives ORDER BY seq")


def _rows(con: sqlite3.Connection, query: str) -> list[Job]:
    cursor = con.cursor()
    cursor.row_factory = lambda each, row: dict(
        zip([column[0] for column in each.description], row, strict=True)
    )
    return cursor.execute(query).fetchall()


def committed(path: Path) -> tuple[list[Job], list[Job]]:
    """Return the jobs and audit rows that a second connection sees."""
    with closing(sqlite3.connect(path, timeout=0)) as other:
        return all_jobs(other), audits(other)


def content(path: Path) -> tuple[bytes, int]:
    """Return a file's bytes and when it was last written.

    Another process reads it: closing a descriptor here would drop this process's locks.
    """
    read = subprocess.run(["cat", path], check=True, capture_output=True)
    return read.stdout, path.stat().st_mtime_ns


@contextmanager
def unchanged(con: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Demand that the block writes nothing to the file and leaves no transaction open."""
    before = content(path)
    yield
    assert not con.in_transaction
    assert before == content(path)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Hold a read lock, which makes every COMMIT of a change fail."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield writer


def without_waiting(con: sqlite3.Connection) -> None:
    """Make a connection report a lock at once."""
    con.execute("PRAGMA busy_timeout = 0")


class Hook(list[str]):
    """A fault hook that records the boundaries; empty, it is false, like any list."""

    def __call__(self, boundary: str) -> None:
        """Record one boundary."""
        self.append(boundary)


def failing_at(boundary: str, error: BaseException) -> Callable[[str], None]:
    """Return a hook that raises at one boundary."""

    def hook(reached: str) -> None:
        if reached == boundary:
            raise error

    return hook


class OwnBaseException(BaseException):
    """An application's own error that no `except Exception` catches."""


#: What a hook, a sender or a clock may raise, none of which has a meaning to the queue.
ERRORS = [
    pytest.param(kind, id=kind.__name__)
    for kind in (
        RuntimeError,
        ValueError,
        sqlite3.OperationalError,
        StopIteration,
        KeyboardInterrupt,
        SystemExit,
        GeneratorExit,
        OwnBaseException,
    )
]


def opened(
    patch: pytest.MonkeyPatch, prepare: Callable[[sqlite3.Connection], object] = without_waiting
) -> list[sqlite3.Connection]:
    """Keep every connection that `open_queue` makes from now on, each prepared first."""
    made: list[sqlite3.Connection] = []
    connect = _open.connect

    def keep(*args: Any, **options: Any) -> sqlite3.Connection:
        con = connect(*args, **options)
        prepare(con)
        made.append(con)
        return con

    patch.setattr(_open, "connect", keep)
    return made


def is_closed(con: sqlite3.Connection) -> bool:
    """Tell whether a connection was closed."""
    try:
        con.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def descriptors(folder: Path) -> list[str]:
    """Return the files in a folder that this process holds open."""
    held = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            held.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in held if name.startswith(f"{folder}/")]


def faults_beside(con: sqlite3.Connection) -> list[str]:
    """Return whatever is wrong with what triggers keep beside the jobs: the tree and the tally."""
    return jobs.tree_check(con) + jobs.tally_check(con)
