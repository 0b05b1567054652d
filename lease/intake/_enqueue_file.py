"""Take in a whole file of events: all of it or nothing, or the good lines of it."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, NamedTuple

from lease import checks
from lease.db.transaction import write_transaction
from lease.intake._records import Format, read_records
from lease.jobs._enqueue import ENQUEUE_FIND, ENQUEUE_INSERT
from lease.limits import WIDE, Limits

#: Called with the number of a line, from 1, and the reason why it was not taken in.
OnProblem = Callable[[int, str], object]

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
    source: BinaryIO,
    file_format: Format,
    now_ms: int,
    ttl_ms: int,
    max_attempts: int,
    *,
    partial: bool = False,
    on_problem: OnProblem = lambda _line, _reason: None,
    limits: Limits = WIDE,
) -> Intake:
    """Record each line of a file as `enqueue` would.

    A line is refused that holds no event, or whose id is recorded with another quantity. All
    lines are read, so that every refusal is told. The write lock is held only while jobs are
    written, never while the source is read. Memory is bounded, whatever the file's size.

    Args:
        con: a connection with no transaction open.
        source: UTF-8 lines; read to its end.
        file_format: `jsonl` for an object of `id` and `qty` a line, `csv` for `id,qty` with or
            without that header.
        now_ms: the present, milliseconds.
        ttl_ms: time to live of each job, milliseconds from 1.
        max_attempts: how often each job may be claimed, from 1.
        partial: take in the other lines where some are refused, a thousand a transaction.
            False takes in all lines, in one transaction, or none.
        on_problem: told of each refused line.
        limits: the upper bounds of the numbers.

    Returns:
        The counts; `new` and `known` are zero where nothing was taken in.

    Raises:
        ValueError: an argument is not of its exact type or out of range.

    Hooks: none.
    """
    checks.now(now_ms, limits)
    checks.integer("ttl_ms", ttl_ms, 1, limits.max_ttl_ms)
    checks.integer("max_attempts", max_attempts, 1, limits.max_attempts)
    intake = _Intaking(con, now_ms, ttl_ms, max_attempts, on_problem)
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
    ) -> None:
        self._con = con
        self._budget = {"now_ms": now_ms, "ttl_ms": ttl_ms, "max_attempts": max_attempts}
        self._on_problem = on_problem
        self._new = self._known = self._refused = 0

    def good_lines(self, source: BinaryIO, file_format: Format) -> Iterator[_Line]:
        for record in read_records(source, file_format):
            if record.event:
                yield record.line, *record.event
            else:
                self._refuse(record.line, record.problem)

    def in_batches(self, lines: Iterator[_Line]) -> Intake:
        while batch := list(islice(lines, _BATCH)):
            with write_transaction(self._con):
                self._record(batch)
        return Intake(self._new, self._known, self._refused)

    def at_once(self, lines: Iterable[_Line]) -> Intake:
        if not self._refused:
            with suppress(_NothingTakenError), write_transaction(self._con):
                self._record(lines)
                self._roll_back_refused()
        if self._refused:
            return Intake(0, 0, self._refused)
        return Intake(self._new, self._known, 0)

    def _record(self, lines: Iterable[_Line]) -> None:
        for line, job_id, qty in lines:
            found = ENQUEUE_FIND.optional(self._con, id=job_id)
            if found is None:
                ENQUEUE_INSERT.none(self._con, id=job_id, qty=qty, **self._budget)
                self._new += 1
            elif found == (qty,):
                self._known += 1
            else:
                self._refuse(line, f"job {job_id} is recorded with qty {found[0]}, not {qty}")

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
