"""Look a queue over for what endangers it or keeps it from being worked on."""

import os
import sqlite3
from typing import NamedTuple

from lease import checks
from lease.db.connection import StrPath
from lease.db.durability import has_wal_reset_fault, mode_in_force
from lease.db.filesystem import is_network, kind_of
from lease.db.statements import statement
from lease.jobs._due import next_due
from lease.jobs._integrity import integrity_check
from lease.jobs._tally import tally_check
from lease.jobs._tree import tree_check
from lease.limits import WIDE

DOCTOR_NEWEST = statement("doctor_newest")
DOCTOR_LEASES = statement("doctor_leases")
DOCTOR_HAS_LOCK = statement("doctor_has_lock")
DOCTOR_LOCK = statement("doctor_lock")

# A worker that is busy takes what is due within seconds; a backlog of this age needs a look.
OVERDUE_MS = 10 * 60_000

_OTHERS = 0o077


class Finding(NamedTuple):
    """What was found of one subject.

    Args:
        subject: `sqlite`, `journal`, `integrity`, `tree`, `tally`, `rights`, `filesystem`, `clock`,
            `leases`, `overdue` or `yoyo`.
        is_well: False where somebody should look.
        detail: what there is, and what to do about it.
    """

    subject: str
    is_well: bool
    detail: str


def doctor(con: sqlite3.Connection, path: StrPath, now_ms: int) -> list[Finding]:
    """Examine a queue, its file and the machine's clock, and change nothing.

    The whole file is read, most of it twice; one without a write-ahead log takes no commit
    during either reading. The database is never opened a second time, which would drop the locks
    that this process holds on it.

    Args:
        con: a connection to a queue; only read from.
        path: the file of that connection.
        now_ms: the present, milliseconds on the queue's time base.

    Returns:
        One finding a subject, always in the same order.

    Raises:
        ValueError: `now_ms` is no instant.
        OSError: the file is not at `path`.
        sqlite3.OperationalError: the file is locked for too long or cannot be read.

    Hooks: none.
    """
    checks.now(now_ms, WIDE)
    mode = mode_in_force(con)
    kind = kind_of(path)
    damage = integrity_check(con)
    found = [
        _sqlite(mode),
        _journal(mode),
        _faults("integrity", damage, "every page can be read", "go back to a copy"),
    ]
    if damage:
        # No other look at the rows of a damaged file can be believed.
        return [*found, _rights(path), _filesystem(kind)]
    faults = tree_check(con)
    return [
        *found,
        _faults("tree", faults, "no job is hidden from a claim", "workers may pass jobs over"),
        _faults("tally", tally_check(con), "stats count every job once", "stats may be wrong"),
        _rights(path),
        _filesystem(kind),
        _clock(con, now_ms),
        _leases(con, now_ms),
        *([] if faults else [_overdue(con, now_ms)]),
        _yoyo(con),
    ]


def _sqlite(mode: str) -> Finding:
    version = sqlite3.sqlite_version
    if not has_wal_reset_fault():
        return Finding("sqlite", True, version)
    if mode != "wal":
        return Finding("sqlite", True, f"{version}; do not use it with a write-ahead log")
    return Finding(
        "sqlite",
        False,
        f"{version} may damage a file with a write-ahead log; use 3.51.3 or later "
        "(3.50.7 and 3.44.6 are mended too), or journal_mode=delete",
    )


def _journal(mode: str) -> Finding:
    if mode == "delete":
        return Finding("journal", True, "delete: one file, readable by any SQLite")
    if mode == "wal":
        return Finding("journal", True, "wal: the files with -wal and -shm belong to it")
    return Finding("journal", False, f"{mode} is no mode of a queue; set it to delete or wal")


def _faults(subject: str, faults: list[str], well: str, advice: str) -> Finding:
    if not faults:
        return Finding(subject, True, well)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return Finding(subject, False, f"{faults[0]}{more}; {advice}")


def _rights(path: StrPath) -> Finding:
    mode = os.stat(path).st_mode & 0o777
    if mode & _OTHERS:
        return Finding("rights", False, f"{mode:03o}: open to other users; chmod it to 600")
    return Finding("rights", True, f"{mode:03o}: its user's alone")


def _filesystem(kind: str | None) -> Finding:
    if is_network(kind):
        return Finding(
            "filesystem",
            False,
            f"{kind}: its locks cannot be trusted, a write-ahead log least of all; "
            "move the file to a local disk",
        )
    return Finding("filesystem", True, kind or "of a kind that the system does not tell")


def _clock(con: sqlite3.Connection, now_ms: int) -> Finding:
    newest = DOCTOR_NEWEST.optional(con)
    ahead_ms = newest[0] - now_ms if newest else 0
    if ahead_ms > 0:
        return Finding(
            "clock",
            False,
            f"{ahead_ms} ms behind the newest redrive; set it right, or wait that long",
        )
    return Finding("clock", True, "not behind the newest redrive")


def _leases(con: sqlite3.Connection, now_ms: int) -> Finding:
    latest_ms = now_ms + WIDE.max_lease_ms
    (held,) = DOCTOR_LEASES.one(con, latest_ms=latest_ms)
    if held:
        return Finding(
            "leases",
            False,
            f"{held} end later than any lease may, or never; the clock was set back, or somebody "
            "wrote them by hand",
        )
    return Finding("leases", True, "none ends later than a lease may")


def _overdue(con: sqlite3.Connection, now_ms: int) -> Finding:
    due_ms = next_due(con)
    late_ms = 0 if due_ms is None else now_ms - due_ms
    if late_ms > OVERDUE_MS:
        return Finding(
            "overdue", False, f"a job has been due for {late_ms // 1000} s; is a worker running?"
        )
    return Finding("overdue", True, f"no job has been due for {OVERDUE_MS // 1000} s")


def _yoyo(con: sqlite3.Connection) -> Finding:
    row = DOCTOR_LOCK.optional(con) if DOCTOR_HAS_LOCK.optional(con) else None
    if row is None:
        return Finding("yoyo", True, "no lock that would hold up its commands")
    (pid,) = row
    # Not by a signal: a number from a file may stand for a whole group of processes.
    if type(pid) is int and os.path.exists(f"/proc/{pid}"):
        return Finding("yoyo", True, f"process {pid} is at work on the schema")
    return Finding(
        "yoyo",
        False,
        f"process {checks.shown(pid)} is gone and has left its lock; remove it with "
        "yoyo break-lock",
    )
