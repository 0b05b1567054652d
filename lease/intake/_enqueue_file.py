"""Take in a whole file of events: all of it or nothing, or the good lines of it."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

from lease import checks
from lease.db.transaction import write_transaction
from lease.intake._records import Format, Lines, read_records
from lease.jobs._enqueue import ENQUEUE_FIND, ENQUEUE_INSERT
from lease.limits import WIDE, Limits

#: Called with the number of a line, from 1, and the reason why it was not taken in.
OnProblem = Callable[[int, str], object]

#: Called now and then with how many lines were read, and how many of them are in the queue.
OnProgress = Callable[[int, int], object]

# What was read waits in memory up to this size and in a temporary file beyond it.
_SPOOL_BYTES = 1 << 18
_BATCH = 1000

_Line = tuple[int, str, int]


class Intake(NamedTuple):
    """How many lines were new jobs, known already, or refused."""

    new: int
    known: int
    refused: int


class _NothingTakenError(Exception):
    """Rolls back an intake that met a conflict."""


def enqueue_file(
    con: sqlite3.Connection,
    source: Lines,
    file_format: Format,
    now_ms: int,
    ttl_ms: int,
    max_attempts: int,
    *,
    partial: bool = False,
    on_problem: OnProblem = lambda _line, _reason: None,
    on_progress: OnProgress = lambda _read, _taken: None,
    limits: Limits = WIDE,
) -> Intake:
    """Record each line of a file as `enqueue` would.

    A line is refused that holds no event, or whose id is recorded with another quantity. All
    lines are read and compared, so that every refusal is told in one go. The write lock is held
    only while jobs are written, never while the source is read. Memory is bounded, whatever the
    file's size.

    Args:
        con: a connection with no transaction open.
        source: UTF-8 lines; read to its end, or to a line of over a gibibyte.
        file_format: `jsonl` for an object of `id` and `qty` a line, `csv` for `id,qty` with or
            without that header.
        now_ms: the present, milliseconds.
        ttl_ms: time to live of each job, milliseconds from 1.
        max_attempts: how often each job may be claimed, from 1.
        partial: take in the other lines where some are refused, a thousand a transaction.
            False takes in all lines, in one transaction, or none.
        on_problem: told of each refused line: first of those that hold no event, unless
            `partial`.
        on_progress: told of the progress, every thousand lines.
        limits: the upper bounds of the numbers.

    Returns:
        The counts; `new` and `known` are zero where nothing was taken in.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
        OSError: the source cannot be read, or the temporary folder not be written to.

    Hooks: none.
    """
    checks.now(now_ms, limits)
    checks.integer("ttl_ms", ttl_ms, 1, limits.max_ttl_ms)
    checks.integer("max_attempts", max_attempts, 1, limits.max_attempts)
    intake = _Intaking(con, now_ms, ttl_ms, max_attempts, on_problem, on_progress)
    good = intake.good_lines(source, file_format)
    if partial:
        return intake.in_batches(good)
    with SpooledTemporaryFile(_SPOOL_BYTES) as spool:
        # Not writelines, which looks at the size only when it has taken in everything.
        for line, job_id, qty in good:
            spool.write(b"%d %s %d\n" % (line, job_id.encode(), qty))
        spool.seek(0)
        return intake.at_once(_spooled(spool))


class _Intaking:
    """The counts of an intake under way, and what each of its jobs is given."""

    def __init__(
        self,
        con: sqlite3.Connection,
        now_ms: int,
        ttl_ms: int,
        max_attempts: int,
        on_problem: OnProblem,
        on_progress: OnProgress,
    ) -> None:
        self._con = con
        self._budget = {"now_ms": now_ms, "ttl_ms": ttl_ms, "max_attempts": max_attempts}
        self._on_problem = on_problem
        self._on_progress = on_progress
        self._read = self._good = 0
        self._new = self._known = self._refused = 0

    def good_lines(self, source: Lines, file_format: Format) -> Iterator[_Line]:
        for record in read_records(source, file_format):
            self._read += 1
            self._tell_progress(self._read)
            if record.event:
                self._good += 1
                yield record.line, *record.event
            else:
                self._refuse(record.line, record.problem)

    def in_batches(self, lines: Iterator[_Line]) -> Intake:
        while batch := list(islice(lines, _BATCH)):
            with write_transaction(self._con):
                self._record(batch)
        return Intake(self._new, self._known, self._refused)

    def at_once(self, lines: Iterable[_Line]) -> Intake:
        # Also where a line holds no event: then the conflicts of the others are told as well.
        if self._good:
            with suppress(_NothingTakenError), write_transaction(self._con):
                self._record(lines)
                self._roll_back_refused()
        if self._refused:
            return Intake(0, 0, self._refused)
        return Intake(self._new, self._known, 0)

    def _record(self, lines: Iterable[_Line]) -> None:
        for number, (line, job_id, qty) in enumerate(lines, 1):
            found = ENQUEUE_FIND.optional(self._con, id=job_id)
            if found is None:
                ENQUEUE_INSERT.none(self._con, id=job_id, qty=qty, **self._budget)
                self._new += 1
            elif found == (qty,):
                self._known += 1
            else:
                self._refuse(line, f"job {job_id} is recorded with qty {found[0]}, not {qty}")
            self._tell_progress(number)

    def _tell_progress(self, number: int) -> None:
        if number % _BATCH == 0:
            self._on_progress(self._read, self._new + self._known)

    def _roll_back_refused(self) -> None:
        if self._refused:
            raise _NothingTakenError

    def _refuse(self, line: int, reason: str) -> None:
        self._refused += 1
        self._on_problem(line, reason)


def _spooled(spool: IO[bytes]) -> Iterator[_Line]:
    for entry in spool:
        line, job_id, qty = entry.decode().split()
        yield int(line), job_id, int(qty)
