"""enqueue_file: all lines or none, or the good ones, under short write transactions."""

import io
import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from lease import WIDE, Limits
from lease.intake import Intake, _enqueue_file, enqueue_file
from tests.support.queue import NOW, all_jobs, put_pending, unchanged, without_waiting, writing
from tests.support.refused import Cases, instants, integers, table

TTL = 5000


def take(
    con: sqlite3.Connection, text: bytes, **options: Any
) -> tuple[Intake, list[tuple[int, str]]]:
    problems: list[tuple[int, str]] = []
    intake = enqueue_file(
        con,
        io.BytesIO(text),
        "csv",
        NOW,
        TTL,
        9,
        on_problem=lambda line, reason: problems.append((line, reason)),
        **options,
    )
    return intake, problems


def ids(con: sqlite3.Connection) -> list[str]:
    return [job["id"] for job in all_jobs(con)]


@pytest.mark.parametrize("partial", [False, True])
def test_enqueue_file_records_each_line_as_enqueue_does(
    con: sqlite3.Connection, partial: bool
) -> None:
    """A line becomes a pending job with the file's budget."""
    assert take(con, b"a,1\nb,2\n", partial=partial) == (Intake(2, 0, 0), [])

    (first, second) = all_jobs(con)
    assert (first["id"], first["qty"], second["id"], second["qty"]) == ("a", 1, "b", 2)
    assert (first["status"], first["attempts"], first["token"]) == ("pending", 0, 0)
    assert (first["available_at"], first["deadline"], first["max_attempts"]) == (NOW, NOW + TTL, 9)


@pytest.mark.parametrize("partial", [False, True])
def test_enqueue_file_counts_what_is_known(con: sqlite3.Connection, partial: bool) -> None:
    """The same id and quantity, in the queue or earlier in the file, is no second job."""
    put_pending(con, id="a", qty=1)

    assert take(con, b"a,1\nb,2\nb,2\n", partial=partial) == (Intake(1, 2, 0), [])
    assert ids(con) == ["a", "b"]


@pytest.mark.parametrize("partial", [False, True])
def test_enqueue_file_of_known_lines_changes_nothing(
    con: sqlite3.Connection, queue_path: Path, partial: bool
) -> None:
    """Taking in a file a second time leaves the queue's bytes as they are."""
    take(con, b"a,1\nb,2\n")

    with unchanged(con, queue_path):
        assert take(con, b"a,1\nb,2\n", partial=partial) == (Intake(0, 2, 0), [])


@pytest.mark.parametrize("bad", [b"c", b"b,3", b"held,2"])
def test_enqueue_file_takes_nothing_where_a_line_is_bad(
    con: sqlite3.Connection, queue_path: Path, bad: bytes
) -> None:
    """A broken line and a conflict alike, with the file or the queue, refuse the whole file."""
    put_pending(con, id="held", qty=1)

    with unchanged(con, queue_path):
        intake, problems = take(con, b"a,1\nb,2\n" + bad + b"\nd,4\n")

    assert intake == Intake(0, 0, 1)
    assert [line for line, _ in problems] == [3]
    assert ids(con) == ["held"]


def test_enqueue_file_takes_the_good_lines_if_told_to(con: sqlite3.Connection) -> None:
    """With `partial` each bad line is told and all the others are taken in."""
    put_pending(con, id="held", qty=1)

    intake, problems = take(con, b"a,1\nbroken\nheld,2\nheld,1\nd,4\n", partial=True)

    assert intake == Intake(2, 1, 2)
    assert problems == [
        (2, "must be id,qty and not 1 field"),
        (3, "job held is recorded with qty 1, not 2"),
    ]
    assert ids(con) == ["held", "a", "d"]


def test_enqueue_file_tells_all_conflicts_of_a_refused_file(con: sqlite3.Connection) -> None:
    """The first conflict does not hide the later ones."""
    _, problems = take(con, b"a,1\na,2\nb,1\nb,2\n")

    assert [line for line, _ in problems] == [2, 4]


def test_enqueue_file_tells_both_kinds_of_a_refused_file(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A line without an event hides neither a conflict with the queue nor one within the file."""
    put_pending(con, id="held", qty=1)

    with unchanged(con, queue_path):
        intake, problems = take(con, b"held,2\na,1\nbroken\na,2\n")

    assert intake == Intake(0, 0, 3)
    assert [line for line, _ in problems] == [3, 1, 4]


def test_enqueue_file_needs_no_lock_where_no_line_is_good(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A file of another kind altogether is refused, whoever writes to the queue."""
    without_waiting(con)
    with writing(queue_path):
        assert take(con, b"broken\n")[0] == Intake(0, 0, 1)
        assert take(con, b"")[0] == Intake(0, 0, 0)


@pytest.mark.parametrize(
    ("partial", "told"),
    [
        (False, [(1000, 0), (2000, 0), (2001, 999), (2001, 1999)]),
        (True, [(1000, 0), (1000, 999), (2000, 999), (2000, 1999)]),
    ],
)
def test_enqueue_file_tells_its_progress(
    con: sqlite3.Connection, partial: bool, told: list[tuple[int, int]]
) -> None:
    """How many lines were read, and how many are in the queue, every thousand lines."""
    put_pending(con, id="job-7", qty=2)
    lines = b"".join(b"job-%d,1\n" % number for number in range(2001))
    seen: list[tuple[int, int]] = []
    take(con, lines, partial=partial, on_progress=lambda *counts: seen.append(counts))

    assert seen == told


def test_enqueue_file_reads_its_source_without_the_write_lock(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """A source that takes its time keeps no other process from writing."""

    class Slow(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            with writing(queue_path):
                return super().readline(size)

    for partial in (False, True):
        source = Slow(b"a,1\nb,2\n")
        enqueue_file(con, source, "csv", NOW, TTL, 9, partial=partial)

    assert ids(con) == ["a", "b"]


def test_enqueue_file_commits_a_partial_file_in_batches(
    con: sqlite3.Connection, queue_path: Path
) -> None:
    """What came before the queue was locked stays taken in."""
    lines = [b"job-%d,1\n" % number for number in range(1001)]
    without_waiting(con)
    locks: list[Any] = []

    class Locking(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(size)
            if not line:
                locks.append(writing(queue_path))
                locks[0].__enter__()
            return line

    source = Locking(b"".join(lines))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        enqueue_file(con, source, "csv", NOW, TTL, 9, partial=True)
    locks[0].__exit__(None, None, None)

    assert len(ids(con)) == 1000


def test_enqueue_file_holds_little_of_a_large_file(
    con: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a bound what was read waits on disk."""
    monkeypatch.setattr(_enqueue_file, "_SPOOL_BYTES", 1 << 14)
    text = b"".join(b"%s-%06d,1\n" % (b"x" * 50, number) for number in range(8000))
    source = io.BytesIO(text)
    tracemalloc.start()
    try:
        intake = enqueue_file(con, source, "csv", NOW, TTL, 9)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert intake == Intake(8000, 0, 0)
    assert most < len(text) / 2


def unusable(limits: Limits) -> Cases:
    return table(
        now_ms=instants(limits),
        ttl_ms=integers(1, limits.max_ttl_ms),
        max_attempts=integers(1, limits.max_attempts),
    )


@pytest.mark.parametrize(("argument", "value"), unusable(WIDE))
def test_enqueue_file_refuses(con: sqlite3.Connection, argument: str, value: object) -> None:
    """A bad budget is refused before the source is touched."""
    source = io.BytesIO(b"a,1\n")
    good: dict[str, Any] = {"now_ms": NOW, "ttl_ms": TTL, "max_attempts": 9}

    with pytest.raises(ValueError, match=f"^{argument} must be "):
        enqueue_file(con, source, "csv", **(good | {argument: value}))

    assert source.tell() == 0
