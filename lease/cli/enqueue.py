"""`lease enqueue`: take in one job, or a file of them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

import click

from lease import jobs as verbs
from lease.cli._arguments import ATTEMPTS, JSON, QUEUE, TTL, identifier, whole
from lease.cli._failures import Failure, shown
from lease.cli._output import print_json
from lease.cli._ticker import Ticker
from lease.cli.queue_files import opened
from lease.clock import wall_ms
from lease.errors import Conflict
from lease.intake import Format, Intake, enqueue_file
from lease.limits import MAX_QTY
from lease.model import Event

_FORMATS: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", "-": "jsonl"}
_MAX_TOLD = 20


@click.command()
@QUEUE
@click.option("--id", "job_id", type=identifier, metavar="ID", help="One job: its id.")
@click.option("--qty", type=whole(1, MAX_QTY), metavar="N", help="One job: its quantity.")
@click.option(
    "--from", "source", type=click.Path(), metavar="FILE", help="Many jobs; - is standard input."
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["jsonl", "csv"]),
    help="Format of FILE; by default its suffix tells, and standard input is jsonl.",
)
@click.option(
    "--partial", is_flag=True, help="Take in the good lines of FILE though others are bad."
)
@TTL
@ATTEMPTS
@JSON
def enqueue(
    path: str,
    job_id: str | None,
    qty: int | None,
    source: str | None,
    file_format: Format | None,
    partial: bool,
    ttl_ms: int,
    max_attempts: int,
    as_json: bool,
) -> None:
    """Take in the job --id and --qty, or those of the file --from, into QUEUE.

    FILE has an object {"id": ..., "qty": ...} a line (jsonl), or id,qty with or without that
    header (csv). Where a line is bad nothing of the file is taken in, unless --partial is given;
    either way the exit code is then 1. A job that is there already counts as known, and one
    with another quantity as bad.

    The keys of --json: new, known, refused.
    """
    if source is None:
        if job_id is None or qty is None:
            raise click.UsageError("give --id and --qty, or --from")
        if file_format or partial:
            raise click.UsageError("--format and --partial go with --from")
        intake = _take_one(path, Event(id=job_id, qty=qty), ttl_ms, max_attempts)
    else:
        if job_id is not None or qty is not None:
            raise click.UsageError("give --id and --qty, or --from, not both")
        chosen = file_format or _FORMATS.get("-" if source == "-" else os.path.splitext(source)[1])
        if chosen is None:
            raise click.UsageError(f"the suffix of {shown(source)} tells no format: give --format")
        intake = _take_file(path, source, chosen, ttl_ms, max_attempts, partial=partial)
    _print(intake, as_json=as_json, partial=partial)


def _take_one(path: str, event: Event, ttl_ms: int, max_attempts: int) -> Intake:
    with opened(path) as con:
        try:
            new = verbs.enqueue(con, event, wall_ms(), ttl_ms, max_attempts)
        except Conflict as error:
            raise Failure(f"{shown(path)}: {error}") from error
    return Intake(new=int(new), known=int(not new), refused=0)


def _take_file(
    path: str, source: str, file_format: Format, ttl_ms: int, max_attempts: int, *, partial: bool
) -> Intake:
    with opened(path) as con, _reading(source) as lines, Ticker(sys.stderr) as ticker:
        return enqueue_file(
            con,
            lines,
            file_format,
            wall_ms(),
            ttl_ms,
            max_attempts,
            partial=partial,
            on_problem=_Problems(lines.name, ticker).tell,
            on_progress=lambda read, taken: ticker.draw(f"{read} lines read, {taken} taken in"),
        )


class _Problems:
    """Tells bad lines, so many of them."""

    def __init__(self, source: str, ticker: Ticker) -> None:
        self._source = source
        self._ticker = ticker
        self._told = 0

    def tell(self, line: int, reason: str) -> None:
        """Tell of one bad line, or that there are more."""
        self._told += 1
        if self._told > _MAX_TOLD + 1:
            return
        self._ticker.clear()
        if self._told <= _MAX_TOLD:
            click.echo(f"{self._source}:{line}: {reason}", err=True)
        else:
            click.echo("Further bad lines are counted, not told", err=True)


class _Source(NamedTuple):
    """The lines of a file; that it cannot be read is no fault of the queue's."""

    name: str
    file: BinaryIO

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, or a part of it."""
        try:
            return self.file.readline(limit)
        except OSError as error:
            raise _unreadable(self.name, error) from error


@contextmanager
def _reading(source: str) -> Iterator[_Source]:
    name = "<stdin>" if source == "-" else shown(source)
    try:
        file = sys.stdin.buffer if source == "-" else open(source, "rb")  # noqa: SIM115  (below)
    except OSError as error:
        raise _unreadable(name, error) from error
    with file:
        try:
            yield _Source(name, file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(
                f"{name} cannot be kept in the temporary folder: {error.strerror}; make room "
                "there, or set TMPDIR"
            ) from error


def _unreadable(name: str, error: OSError) -> Failure:
    return Failure(f"{name} cannot be read: {error.strerror}")


def _print(intake: Intake, *, as_json: bool, partial: bool) -> None:
    counts = f"{intake.new} new, {intake.known} known"
    if as_json:
        print_json(intake._asdict())
    elif not intake.refused:
        click.echo(counts)
    elif partial:
        click.echo(f"{counts}, {intake.refused} refused")
    else:
        click.echo(f"Nothing taken in: {intake.refused} refused")
    if intake.refused:
        click.get_current_context().exit(1)
