"""`lease init`, `stats`, `jobs`: what they print, and the exit code."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from lease import open_queue
from lease.cli import queue_files
from lease.db import durability
from lease.db.connection import connect
from lease.db.durability import mode_in_force
from tests.support.cli import lease
from tests.support.queue import (
    NOW,
    all_jobs,
    content,
    put_dead,
    put_leased,
    put_pending,
)


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Let every command run at the same moment."""
    with patch.object(queue_files, "wall_ms", lambda: NOW):
        yield


def test_init_makes_a_queue(queue_path: Path) -> None:
    """A new file is a queue, and private to its user."""
    assert lease("init", queue_path) == (0, f"{queue_path} is a new queue\n", "")

    assert queue_path.stat().st_mode & 0o777 == 0o600
    with closing(open_queue(queue_path)) as con:
        assert all_jobs(con) == []


def test_init_keeps_what_is_there(con: sqlite3.Connection, queue_path: Path) -> None:
    """Saying it twice changes nothing."""
    put_pending(con)
    before = content(queue_path)

    assert lease("init", queue_path) == (0, f"{queue_path} is ready\n", "")
    assert content(queue_path) == before


@pytest.mark.filterwarnings("default::lease.errors.WalResetWarning")
@pytest.mark.parametrize("is_faulty", [True, False])
def test_init_opts_in_to_a_log(queue_path: Path, is_faulty: bool) -> None:
    """A queue may have a write-ahead log, and SQLite's fault with it is told in one line."""
    durability._warn_of_wal_reset.cache_clear()
    with patch.object(durability, "has_wal_reset_fault", lambda: is_faulty):
        code, out, err = lease("init", queue_path, "--journal-mode", "wal")

    assert (code, out) == (0, f"{queue_path} is a new queue\n")
    assert err.count("\n") == is_faulty
    assert err.startswith(f"lease: SQLite {sqlite3.sqlite_version} may damage") or not is_faulty
    with closing(connect(queue_path)) as con:
        assert mode_in_force(con) == "wal"


def fill(con: sqlite3.Connection) -> None:
    put_pending(con, id="soon", qty=1, available_at=NOW + 90_000, deadline=NOW + 7_200_000)
    put_pending(con, id="now", qty=2, available_at=NOW, deadline=NOW + 500, reason="retry")
    put_leased(con, id="held", qty=3, lease_until=NOW + 4000, deadline=NOW + 86_400_000)
    put_dead(con, id="late", reason="deadline", token=1)
    put_dead(con, id="tired", reason="exhausted", token=12)
    put_dead(con, id="settled", status="done", reason=None, token=1)


def test_stats_prints_the_counts(con: sqlite3.Connection, queue_path: Path) -> None:
    """A table for people: states, what is due, why jobs died."""
    fill(con)

    assert lease("stats", queue_path) == (
        0,
        (
            "pending  2  next due now\n"
            "leased   1\n"
            "done     1\n"
            "dead     2  1 deadline, 1 exhausted\n"
            "jobs     6  18 claims, 0 redrives\n"
        ),
        "",
    )


def test_stats_of_an_empty_queue_have_nothing_due(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """No remark stands where there is nothing to remark."""
    assert lease("stats", queue_path).out.splitlines()[0] == "pending  0"


def test_stats_prints_json(con: sqlite3.Connection, queue_path: Path) -> None:
    """The keys are fixed."""
    fill(con)

    assert lease("stats", queue_path, "--json").json == {
        "jobs": 6,
        "pending": 2,
        "leased": 1,
        "done": 1,
        "dead": 2,
        "dead_reasons": {"deadline": 1, "exhausted": 1, "permanent": 0},
        "claims": 18,
        "redrives": 0,
        "next_due_ms": NOW,
    }


def test_jobs_prints_a_table(con: sqlite3.Connection, queue_path: Path) -> None:
    """Each state says what matters of it: when it goes on, or why it ended."""
    fill(con)

    assert lease("jobs", queue_path) == (
        0,
        (
            "SEQ  ID       QTY  STATUS   TRIES  TOKEN  NEXT   DEADLINE  REASON     OWNER\n"
            "  1  soon       1  pending    0/3      0  in 1m  in 2h     -          -\n"
            "  2  now        2  pending    0/3      0  now    in 500ms  retry      -\n"
            "  3  held       3  leased     1/3      4  in 4s  in 1d     -          worker-a\n"
            "  4  late       7  dead       3/3      1  -      -         deadline   -\n"
            "  5  tired      7  dead       3/3     12  -      -         exhausted  -\n"
            "  6  settled    7  done       3/3      1  -      -         -          -\n"
        ),
        "",
    )


def test_jobs_of_an_empty_queue_prints_nothing(con: sqlite3.Connection, queue_path: Path) -> None:
    """No header stands over nothing."""
    assert lease("jobs", queue_path) == (0, "", "")


def test_jobs_bears_what_an_outsider_wrote(con: sqlite3.Connection, queue_path: Path) -> None:
    """A leased job without a lease end, which nobody can take, is shown as such."""
    put_leased(con, lease_until=None)

    assert lease("jobs", queue_path).out.splitlines()[1].split()[6] == "-"


def test_jobs_prints_json_lines(con: sqlite3.Connection, queue_path: Path) -> None:
    """A line is a job, under the names of its columns."""
    fill(con)

    assert lease("jobs", queue_path, "--json").json_lines == all_jobs(con)


def test_jobs_lists_one_state(con: sqlite3.Connection, queue_path: Path) -> None:
    """The state is one of the four."""
    fill(con)

    listed = lease("jobs", queue_path, "--status", "dead", "--json").json_lines

    assert [each["id"] for each in listed] == ["late", "tired"]
    assert lease("jobs", queue_path, "--status", "gone").code == 2


def test_jobs_lists_what_is_dead_for_one_reason(con: sqlite3.Connection, queue_path: Path) -> None:
    """The reason is one of the three, and goes with the state of being dead alone."""
    fill(con)

    listed = lease("jobs", queue_path, "--reason", "exhausted", "--json").json_lines

    assert [each["id"] for each in listed] == ["tired"]
    assert lease("jobs", queue_path, "--reason", "permanent") == (0, "", "")
    assert lease("jobs", queue_path, "--status", "done", "--reason", "exhausted") == (0, "", "")
    assert lease("jobs", queue_path, "--reason", "retry").code == 2


def test_jobs_of_one_reason_says_that_there_are_more(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Only jobs of that reason count as more."""
    for name, reason in (("a", "permanent"), ("b", "permanent"), ("c", "deadline")):
        put_dead(con, id=name, reason=reason)
    command = ("jobs", queue_path, "--reason", "permanent", "--json", "--limit")

    assert lease(*command, 1).err == "There are more: --after 1 or a larger --limit\n"
    assert lease(*command, 2).err == ""


def test_jobs_ends_at_the_limit_and_says_so(con: sqlite3.Connection, queue_path: Path) -> None:
    """What was left out can be asked for."""
    fill(con)

    code, _, err = first = lease("jobs", queue_path, "--limit", "4", "--json")
    rest = lease("jobs", queue_path, "--after", "4", "--limit", "2", "--json")

    assert [each["seq"] for each in first.json_lines] == [1, 2, 3, 4]
    assert (code, err) == (0, "There are more: --after 4 or a larger --limit\n")
    assert [each["seq"] for each in rest.json_lines] == [5, 6]
    assert rest.err == ""


def test_jobs_lists_what_has_any_seq(con: sqlite3.Connection, queue_path: Path) -> None:
    """An outsider may have chosen one below 1 or beyond all others; SEQ may be such a one."""
    seqs = [-(2**63), -1, 0, 2**63 - 1]
    for seq in seqs:
        put_pending(con, id=f"job{seq}", seq=seq)

    listed = lease("jobs", queue_path, "--limit", "2", "--json")
    rest = lease("jobs", queue_path, "--after", "-1", "--json")
    assert [each["seq"] for each in listed.json_lines + rest.json_lines] == seqs
    assert listed.err == "There are more: --after -1 or a larger --limit\n"
    assert lease("jobs", queue_path, "--after", 2**63, "--json").code == 2


def test_jobs_reads_a_long_list_in_pages(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory holds a page of a list, however long that is."""
    monkeypatch.setattr(queue_files, "_PAGE", 2)
    fill(con)

    listed = lease("jobs", queue_path, "--limit", "5", "--json").json_lines

    assert [each["seq"] for each in listed] == [1, 2, 3, 4, 5]
