"""`lease redrive`: one job, several, all of a reason, all; what it prints, and kills in between."""

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lease import jobs
from lease.cli import _redriving
from tests.support.cli import lease
from tests.support.processes import Child
from tests.support.queue import (
    NOW,
    all_jobs,
    audits,
    content,
    job,
    put_dead,
    put_leased,
    put_pending,
    writing,
)

NOTE = ("--note", "mended")


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Let every command run at the same moment."""
    with patch.object(_redriving, "wall_ms", lambda: NOW):
        yield


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two jobs be a batch."""
    monkeypatch.setattr(_redriving, "_BATCH", 2)


small_batches = pytest.mark.usefixtures("_small_batches")


def fill(con: sqlite3.Connection) -> None:
    """Put jobs that are dead for each reason, and others."""
    for name, reason in (("p1", "permanent"), ("d1", "deadline"), ("e1", "exhausted")):
        put_dead(con, id=name, reason=reason, token=3)
    put_pending(con, id="waiting")
    put_leased(con, id="held")
    put_dead(con, id="p2", reason="permanent", token=4)
    put_dead(con, id="over", status="done", reason=None)
    put_dead(con, id="odd", reason=None)


def states(con: sqlite3.Connection) -> dict[str, str]:
    """Return each job's state."""
    return {each["id"]: each["status"] for each in all_jobs(con)}


def dead(con: sqlite3.Connection) -> list[str]:
    """Return the ids of the jobs that are dead."""
    return [name for name, status in states(con).items() if status == "dead"]


def notes(con: sqlite3.Connection) -> list[tuple[str, int, str]]:
    """Return the id, token and note of each audit row."""
    return [(each["id"], each["token"], each["note"]) for each in audits(con)]


def test_redrive_revives_a_dead_job(con: sqlite3.Connection, queue_path: Path) -> None:
    """The job has a day again, and the audit row its reason."""
    put_dead(con, token=5)

    assert lease("redrive", queue_path, "job-1", *NOTE) == (0, "job-1 is pending again\n", "")

    assert (job(con)["status"], job(con)["attempts"], job(con)["token"]) == ("pending", 0, 5)
    assert (job(con)["available_at"], job(con)["deadline"]) == (NOW, NOW + 86_400_000)
    assert notes(con) == [("job-1", 5, "mended")]


def test_redrive_of_several_jobs(con: sqlite3.Connection, queue_path: Path) -> None:
    """Those that were named, in the order given, and no other."""
    fill(con)

    assert lease("redrive", queue_path, "p2", "d1", *NOTE) == (0, "2 pending again\n", "")
    assert dead(con) == ["p1", "e1", "odd"]
    assert notes(con) == [("p2", 4, "mended"), ("d1", 3, "mended")]


@pytest.mark.parametrize(
    ("how", "released"),
    [
        (("--reason", "permanent"), ["p1", "p2"]),
        (("--reason", "deadline"), ["d1"]),
        (("--reason", "exhausted"), ["e1"]),
        (("--all",), ["p1", "d1", "e1", "p2", "odd"]),
    ],
)
def test_redrive_of_all(
    con: sqlite3.Connection, queue_path: Path, how: tuple[str, ...], released: list[str]
) -> None:
    """What is dead for a reason, or at all, in the order of intake; the others stay as they are."""
    fill(con)
    before = {each["id"]: each for each in all_jobs(con)}

    assert lease("redrive", queue_path, *how, *NOTE) == (0, f"{len(released)} pending again\n", "")

    assert [name for name, _token, _note in notes(con)] == released
    after = {each["id"]: each for each in all_jobs(con)}
    assert [name for name in before if after[name] != before[name]] == released
    assert {after[name]["status"] for name in released} == {"pending"}
    assert {after[name]["deadline"] for name in released} == {NOW + 86_400_000}
    assert lease("redrive", queue_path, *how, *NOTE) == (0, "0 pending again\n", "")


def test_redrive_prints_json(con: sqlite3.Connection, queue_path: Path) -> None:
    """The keys are the same in every way, and the time to live is the caller's."""
    fill(con)
    command = ("redrive", queue_path, *NOTE, "--ttl", "90d", "--json")
    told = {"refused": 0, "note": "mended", "dry_run": False}

    assert lease(*command, "p1").json == {"redriven": 1, **told}
    assert lease(*command, "--all").json == {"redriven": 4, **told}
    assert lease(*command, "--reason", "deadline").json == {"redriven": 0, **told}
    assert job(con, "p1")["deadline"] == NOW + 90 * 86_400_000


def test_redrive_refuses_a_job_that_is_not_dead(con: sqlite3.Connection, queue_path: Path) -> None:
    """An unknown job and a living one are told apart, and nothing changes."""
    put_pending(con)
    before = content(queue_path)

    assert lease("redrive", queue_path, "job-2", *NOTE) == (
        1,
        "",
        f"lease: {queue_path}: there is no job job-2\n",
    )
    assert lease("redrive", queue_path, "job-1", *NOTE) == (
        1,
        "",
        f"lease: {queue_path}: job job-1 is pending; only a dead job can be redriven\n",
    )
    assert content(queue_path) == before


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_redrive_prints_json_of_one_refused_job(
    con: sqlite3.Connection, queue_path: Path, more: tuple[str, ...]
) -> None:
    """In the same form as of several; the reason is told on stderr."""
    put_pending(con)
    told = {"redriven": 0, "refused": 1, "note": "mended", "dry_run": bool(more)}

    ran = lease("redrive", queue_path, "nope", *NOTE, "--json", *more)
    assert (ran.code, ran.json) == (1, told)
    assert ran.err == f"{queue_path}: there is no job nope\n"
    assert lease("redrive", queue_path, "job-1", *NOTE, "--json", *more).json == told


def test_redrive_releases_the_dead_among_those_named(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Each that is not dead is told on a line, holds up no other, and is exit code 1."""
    fill(con)
    command = ("redrive", queue_path, "held", "p1", "none", "d1", *NOTE)

    assert lease(*command) == (
        1,
        "2 pending again, 2 refused\n",
        (
            f"{queue_path}: job held is leased; only a dead job can be redriven\n"
            f"{queue_path}: there is no job none\n"
        ),
    )
    assert dead(con) == ["e1", "p2", "odd"]
    again = lease(*command, "--json")
    assert (again.code, again.json["redriven"], again.json["refused"]) == (1, 0, 4)


def test_redrive_takes_a_name_once(con: sqlite3.Connection, queue_path: Path) -> None:
    """An id that was given twice is no mistake."""
    put_dead(con)

    assert lease("redrive", queue_path, "job-1", "job-1", *NOTE) == (0, "1 pending again\n", "")
    assert len(audits(con)) == 1


def test_redrive_tells_so_many_refusals(con: sqlite3.Connection, queue_path: Path) -> None:
    """A list of thousands that are all unknown does not flood a terminal."""
    ids = [f"job-{number}" for number in range(22)]

    code, out, err = lease("redrive", queue_path, *ids, *NOTE)

    assert (code, out) == (1, "0 pending again, 22 refused\n")
    assert err.splitlines()[19:] == [
        f"{queue_path}: there is no job job-19",
        "Further ones are counted, not told",
    ]
    assert len(lease("redrive", queue_path, *ids[:20], *NOTE).err.splitlines()) == 20


@pytest.mark.parametrize(
    ("how", "code", "out"),
    [
        (("p1",), 0, "1 can be redriven; nothing was changed\n"),
        (("p1", "none", "held"), 1, "1 can be redriven, 2 cannot; nothing was changed\n"),
        (("--reason", "permanent"), 0, "2 can be redriven; nothing was changed\n"),
        (("--all",), 0, "5 can be redriven; nothing was changed\n"),
    ],
)
@pytest.mark.parametrize("note", [(), NOTE])
def test_redrive_can_only_tell(
    con: sqlite3.Connection,
    queue_path: Path,
    how: tuple[str, ...],
    code: int,
    out: str,
    note: tuple[str, ...],
) -> None:
    """A dry run counts, needs no note, and changes no byte."""
    fill(con)
    before = content(queue_path)

    ran = lease("redrive", queue_path, *how, *note, "--dry-run")

    assert (ran.code, ran.out) == (code, out)
    told = lease("redrive", queue_path, *how, *note, "--dry-run", "--json").json
    assert told == {
        "redriven": int(out.partition(" ")[0]),
        "refused": 2 if code else 0,
        "note": note[1] if note else None,
        "dry_run": True,
    }
    assert content(queue_path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("job-1", "--all"),
        ("job-1", "--reason", "permanent"),
        ("--all", "--reason", "permanent"),
        ("job-1", "--all", "--reason", "permanent"),
    ],
)
@pytest.mark.parametrize("more", [NOTE, ("--dry-run",)])
def test_redrive_needs_exactly_one_way(
    con: sqlite3.Connection, queue_path: Path, arguments: tuple[str, ...], more: tuple[str, ...]
) -> None:
    """None and two of them are one clear line, and nothing changes."""
    put_dead(con, reason="permanent")

    assert lease("redrive", queue_path, *arguments, *more) == (
        2,
        "",
        "lease: give either IDs, or --reason, or --all; see 'lease redrive --help'\n",
    )
    assert job(con)["status"] == "dead"


def test_redrive_needs_a_note(con: sqlite3.Connection, queue_path: Path) -> None:
    """No job is revived without a reason, nor for a time that is out of range."""
    put_dead(con)

    for how in (("job-1",), ("--all",), ("--reason", "exhausted")):
        code, out, err = lease("redrive", queue_path, *how)
        assert (code, out) == (2, "")
        assert err.startswith("lease: --note is missing: the reason, for the audit rows; see ")
        assert lease("redrive", queue_path, *how, "--note", "a b").code == 2
        assert lease("redrive", queue_path, *how, *NOTE, "--ttl", "91d").code == 2
    assert lease("redrive", queue_path, "--reason", "retry", *NOTE).code == 2
    assert lease("redrive", queue_path, "a b", *NOTE).code == 2
    assert job(con)["status"] == "dead"


@small_batches
@pytest.mark.parametrize("how", [("--all",), ("--reason", "exhausted"), tuple("abcde")])
def test_redrive_works_in_batches(
    con: sqlite3.Connection, queue_path: Path, how: tuple[str, ...]
) -> None:
    """Each batch is a transaction, at its own instant."""
    for name in "abcde":
        put_dead(con, id=name)
    sizes = []

    def release(con: Any, ids: list[str], now_ms: int, *rest: Any) -> Any:
        sizes.append(len(ids))
        return released(con, ids, now_ms + len(sizes), *rest)

    released = jobs.redrive_many
    with patch.object(jobs, "redrive_many", release):
        assert lease("redrive", queue_path, *how, *NOTE).out == "5 pending again\n"

    assert sizes == [2, 2, 1]
    assert [each["at_ms"] - NOW for each in audits(con)] == [1, 1, 2, 2, 3]


@small_batches
def test_redrive_releases_no_job_twice(con: sqlite3.Connection, queue_path: Path) -> None:
    """A job that dies again while the run goes on stays dead, so that the run ends."""
    for name in "abcde":
        put_dead(con, id=name)

    def release(*arguments: Any) -> Any:
        try:
            return released(*arguments)
        finally:
            con.execute("UPDATE jobs SET status = 'dead', reason = 'exhausted'")

    released = jobs.redrive_many
    with patch.object(jobs, "redrive_many", release):
        assert lease("redrive", queue_path, "--all", *NOTE).out == "5 pending again\n"

    assert [each["id"] for each in audits(con)] == list("abcde")
    assert dead(con) == list("abcde")


@small_batches
def test_redrive_bears_another_that_is_faster(con: sqlite3.Connection, queue_path: Path) -> None:
    """What somebody else has released meanwhile is no failure of this run, and is not counted."""
    for name in "abc":
        put_dead(con, id=name)

    def release(con: Any, ids: list[str], *rest: Any) -> Any:
        with suppress(ValueError):
            jobs.redrive(con, "b", NOW, 1000, "other")
        return released(con, ids, *rest)

    released = jobs.redrive_many
    with patch.object(jobs, "redrive_many", release):
        assert lease("redrive", queue_path, "--all", *NOTE) == (0, "2 pending again\n", "")
    assert [each["note"] for each in audits(con)] == ["other", "mended", "mended"]


@pytest.mark.parametrize(("failures", "code"), [(9, 0), (10, 1)])
def test_redrive_waits_for_its_turn_among_busy_workers(
    con: sqlite3.Connection, queue_path: Path, failures: int, code: int
) -> None:
    """A batch that finds the queue locked is tried again, so many times."""
    put_dead(con)
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    left = [error] * failures

    def release(*arguments: Any) -> Any:
        if left:
            raise left.pop()
        return released(*arguments)

    released = jobs.redrive_many
    with patch.object(jobs, "redrive_many", release):
        ran = lease("redrive", queue_path, "--all", *NOTE)

    locked = f"lease: {queue_path} is locked by another process; try again when it is done\n"
    assert ran == ((0, "1 pending again\n", "") if code == 0 else (1, "", locked))
    assert len(audits(con)) == 1 - code


def test_redrive_waits_for_nothing_but_a_lock(con: sqlite3.Connection, queue_path: Path) -> None:
    """Another error of the file is told at once."""
    put_dead(con)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR

    with patch.object(jobs, "redrive_many", side_effect=error) as release:
        code, _, err = lease("redrive", queue_path, "--all", *NOTE)

    assert (code, release.call_count) == (1, 1)
    assert "cannot be read or written" in err


def test_redrive_only_tells_while_somebody_writes(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A dry run needs no lock of its own."""
    put_dead(con)

    with writing(queue_path):
        ran = lease("redrive", queue_path, "--all", "--dry-run")
    assert ran.out == "1 can be redriven; nothing was changed\n"


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("point", ["after-audit", "after-redrive", "after-commit"])
def test_a_killed_redrive_leaves_whole_batches(
    con: sqlite3.Connection, queue_path: Path, batches: int, point: str
) -> None:
    """Killed within or between batches of the real command, and said again, it goes on.

    Each job has exactly one audit row in the end.
    """
    ids = [put_dead(con, id=f"job-{number}", token=number)["id"] for number in range(7)]
    child = Child(
        "redrive_and_die", str(queue_path), 2, batches, point, module="tests.cli.redrive_child"
    )
    assert child.ended() == -signal.SIGKILL

    whole = batches if point == "after-commit" else batches - 1
    assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert dead(con) == ids[2 * whole :]
    assert [each["id"] for each in audits(con)] == ids[: 2 * whole]
    assert jobs.tree_check(con) == []

    assert lease("redrive", queue_path, "--all", *NOTE).out == f"{7 - 2 * whole} pending again\n"
    assert dead(con) == []
    assert [(each["id"], each["token"]) for each in audits(con)] == list(
        zip(ids, range(7), strict=True)
    )
