"""`lease enqueue`: one job, or a file of them; what is told of bad lines, and the exit code."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from lease.cli import enqueue as module
from lease.cli._ticker import Ticker
from tests.support.cli import ended, lease, started
from tests.support.queue import NOW, all_jobs, content, put_pending

DAY = 86_400_000


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Let every command run at the same moment."""
    with patch.object(module, "wall_ms", lambda: NOW):
        yield


def ids(con: sqlite3.Connection) -> list[str]:
    return [each["id"] for each in all_jobs(con)]


def test_enqueue_takes_in_one_job(con: sqlite3.Connection, queue_path: Path) -> None:
    """By default a job has a day and sixteen attempts."""
    assert lease("enqueue", queue_path, "--id", "a", "--qty", 7) == (0, "1 new, 0 known\n", "")

    (job,) = all_jobs(con)
    assert (job["id"], job["qty"], job["status"], job["max_attempts"]) == ("a", 7, "pending", 16)
    assert (job["available_at"], job["deadline"]) == (NOW, NOW + DAY)


def test_enqueue_takes_a_budget(con: sqlite3.Connection, queue_path: Path) -> None:
    """Time to live and attempts are options."""
    lease("enqueue", queue_path, "--id", "a", "--qty", 7, "--ttl", "90s", "--attempts", 1000)

    (job,) = all_jobs(con)
    assert (job["deadline"], job["max_attempts"]) == (NOW + 90_000, 1000)


def test_enqueue_counts_a_known_job(con: sqlite3.Connection, queue_path: Path) -> None:
    """The same job again is no failure."""
    put_pending(con, id="a", qty=7)
    before = content(queue_path)

    ran = lease("enqueue", queue_path, "--id", "a", "--qty", 7, "--json")

    assert (ran.code, ran.json) == (0, {"new": 0, "known": 1, "refused": 0})
    assert content(queue_path) == before


def test_enqueue_tells_a_conflict(con: sqlite3.Connection, queue_path: Path) -> None:
    """The same id with another quantity is a failure that names both."""
    put_pending(con, id="a", qty=7)

    assert lease("enqueue", queue_path, "--id", "a", "--qty", 8) == (
        1,
        "",
        f"lease: {queue_path}: job a is recorded with qty 7, not 8; use another id\n",
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "give --id and --qty, or --from; see"),
        (("--id", "a"), "give --id and --qty, or --from; see"),
        (("--qty", "1"), "give --id and --qty, or --from; see"),
        (
            ("--id", "a", "--qty", "1", "--from", "-"),
            "give --id and --qty, or --from, not both; see",
        ),
        (("--qty", "1", "--from", "-"), "give --id and --qty, or --from, not both; see"),
        (("--id", "a", "--qty", "1", "--partial"), "--format and --partial go with --from; see"),
        (("--id", "a", "--qty", "1", "--format", "csv"), "--format and --partial go with --from"),
        (("--id", "a", "--qty", "1001"), "Invalid value for '--qty': '1001' is no number from 1"),
        (("--id", "a b", "--qty", "1"), "Invalid value for '--id': it must be a string of 1-64"),
        (("--id", "a", "--qty", "1", "--ttl", "91d"), "Invalid value for '--ttl': 91d is not from"),
        (("--id", "a", "--qty", "1", "--attempts", "0"), "Invalid value for '--attempts': '0' is"),
        (("--from", "jobs.txt"), "the suffix of jobs.txt tells no format: give --format; see"),
    ],
)
def test_enqueue_refuses(
    con: sqlite3.Connection, queue_path: Path, arguments: tuple[str, ...], line: str
) -> None:
    """What does not go together is told before anything happens."""
    code, out, err = lease("enqueue", queue_path, *arguments)

    assert (code, out) == (2, "")
    assert err.startswith(f"lease: {line}")
    assert all_jobs(con) == []


JSON_LINES = b'{"id": "a", "qty": 1}\n{"id": "b", "qty": 2}\n'
CSV = b"id,qty\na,1\nb,2\n"


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("jobs.jsonl", JSON_LINES, ()),
        ("jobs.ndjson", JSON_LINES, ()),
        ("jobs.csv", CSV, ()),
        ("jobs", CSV, ("--format", "csv")),
        ("jobs.csv", JSON_LINES, ("--format", "jsonl")),
    ],
)
def test_enqueue_takes_in_a_file(
    con: sqlite3.Connection,
    queue_path: Path,
    tmp_path: Path,
    name: str,
    content: bytes,
    options: tuple[str, ...],
) -> None:
    """The format is told by the suffix, or by an option that goes before it."""
    file = tmp_path / name
    file.write_bytes(content)

    assert lease("enqueue", queue_path, "--from", file, *options) == (0, "2 new, 0 known\n", "")
    assert ids(con) == ["a", "b"]


@pytest.mark.parametrize(("stdin", "options"), [(JSON_LINES, ()), (CSV, ("--format", "csv"))])
def test_enqueue_takes_in_standard_input(
    con: sqlite3.Connection, queue_path: Path, stdin: bytes, options: tuple[str, ...]
) -> None:
    """A dash is standard input, of JSON lines unless told otherwise."""
    ran = lease("enqueue", queue_path, "--from", "-", *options, "--json", stdin=stdin)

    assert (ran.code, ran.json) == (0, {"new": 2, "known": 0, "refused": 0})
    assert ids(con) == ["a", "b"]


def test_enqueue_takes_nothing_of_a_file_with_a_bad_line(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """Each bad line is told with its number, a conflict too, and the good ones are not taken in."""
    stdin = b"a,1\nb\nc,3\nc,4\nd,x\n"

    ran = lease("enqueue", queue_path, "--from", "-", "--format", "csv", stdin=stdin)

    assert ran == (
        1,
        "Nothing taken in: 3 refused\n",
        (
            "<stdin>:2: must be id,qty and not 1 field\n"
            "<stdin>:5: qty must be a whole number from 1 to 1000, not 'x'\n"
            "<stdin>:4: job c is recorded with qty 3, not 4\n"
        ),
    )
    assert all_jobs(con) == []


def test_enqueue_takes_the_good_lines_with_partial(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """The exit code still says that something was refused."""
    file = tmp_path / "jobs.csv"
    file.write_bytes(b"a,1\nb\nc,3\nc,4\n")

    ran = lease("enqueue", queue_path, "--from", file, "--partial")

    assert ran == (
        1,
        "2 new, 0 known, 2 refused\n",
        (
            f"{file}:2: must be id,qty and not 1 field\n"
            f"{file}:4: job c is recorded with qty 3, not 4\n"
        ),
    )
    assert ids(con) == ["a", "c"]


def test_enqueue_prints_json_of_a_refused_file(con: sqlite3.Connection, queue_path: Path) -> None:
    """The counts are there on failure as well."""
    ran = lease("enqueue", queue_path, "--from", "-", "--json", stdin=b"x\n")

    assert (ran.code, ran.json) == (1, {"new": 0, "known": 0, "refused": 1})


def test_enqueue_tells_so_many_bad_lines_and_counts_the_rest(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A file of another kind altogether does not flood the terminal."""
    ran = lease("enqueue", queue_path, "--from", "-", stdin=b"x\n" * 30)

    assert ran.out == "Nothing taken in: 30 refused\n"
    assert len(ran.err.splitlines()) == 21
    assert ran.err.endswith("Further bad lines are counted, not told\n")


@pytest.mark.parametrize(
    ("name", "reason"), [("none.csv", "No such file or directory"), (".", "Is a directory")]
)
def test_enqueue_tells_a_file_that_cannot_be_read(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path, name: str, reason: str
) -> None:
    """Not the queue is to blame."""
    path = os.path.join(tmp_path, name)

    assert lease("enqueue", queue_path, "--from", path, "--format", "csv") == (
        1,
        "",
        f"lease: {path} cannot be read: {reason}\n",
    )


def test_enqueue_reads_a_pipe(con: sqlite3.Connection, queue_path: Path) -> None:
    """What another program writes goes in as a process of its own."""
    reader, writer = os.pipe()
    os.write(writer, JSON_LINES)
    os.close(writer)
    with started("enqueue", queue_path, "--from", "-", stdin=reader) as process:
        os.close(reader)
        assert ended(process) == (0, "2 new, 0 known\n", "")

    assert ids(con) == ["a", "b"]


def test_enqueue_ends_at_a_line_without_an_end(con: sqlite3.Connection, queue_path: Path) -> None:
    """A device is no file of jobs."""
    ran = lease("enqueue", queue_path, "--from", "/dev/zero", "--format", "csv")

    assert (ran.code, ran.out) == (1, "Nothing taken in: 1 refused\n")
    assert ran.err == "/dev/zero:1: longer than 1073741824 bytes; nothing from here on was read\n"


def test_enqueue_tells_of_a_source_that_fails_on_the_way(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """What can be opened may still not be readable."""
    ran = lease("enqueue", queue_path, "--from", "/proc/self/mem", "--format", "csv")

    assert ran == (1, "", "lease: /proc/self/mem cannot be read: Input/output error\n")


def test_enqueue_blames_the_temporary_folder_for_its_own_fault(
    con: sqlite3.Connection, queue_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the queue nor the source is to blame for a disk that is full elsewhere."""

    def fail(_size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lease.intake._enqueue_file.SpooledTemporaryFile", fail)

    assert lease("enqueue", queue_path, "--from", "-", stdin=JSON_LINES) == (
        1,
        "",
        (
            "lease: <stdin> cannot be kept in the temporary folder: No space left on device; "
            "make room there, or set TMPDIR\n"
        ),
    )


def test_enqueue_ends_quietly_when_nobody_reads_its_complaints(
    con: sqlite3.Connection, queue_path: Path, tmp_path: Path
) -> None:
    """A closed pipe is no fault of the source's."""
    file = tmp_path / "jobs.csv"
    file.write_bytes(b"broken\n" * 30)
    reader, writer = os.pipe()
    os.close(reader)
    with started("enqueue", queue_path, "--from", file, stdout=writer, stderr=writer) as process:
        os.close(writer)
        assert ended(process).code == 1


def test_enqueue_shows_its_progress_on_a_terminal(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """The line is drawn over itself, makes room for a bad line, and is gone at the end."""
    drawn: list[str] = []

    class Recorded(Ticker):
        def draw(self, line: str) -> None:
            drawn.append(line)
            super().draw(line)

        def clear(self) -> None:
            drawn.append("")

    lines = b"".join(b"job-%d,1\n" % number for number in range(999)) + b"broken\n"
    with patch.object(module, "Ticker", Recorded):
        lease("enqueue", queue_path, "--from", "-", "--format", "csv", "--partial", stdin=lines)

    assert drawn == ["1000 lines read, 0 taken in", "", ""]
