"""`lease init`, `stats` and `jobs`: make a queue, and look at it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import get_args

import click

from lease import jobs as verbs
from lease.cli._arguments import AFTER, JSON, LIMIT, QUEUE, span
from lease.cli._failures import blamed_on, shown
from lease.cli._output import print_json, print_table
from lease.clock import wall_ms
from lease.db.durability import JournalMode

_HEADER = ("SEQ", "ID", "QTY", "STATUS", "TRIES", "TOKEN", "NEXT", "DEADLINE", "REASON", "OWNER")
_NUMBERS = {0, 2, 4, 5}
_PAGE = 1000


@contextmanager
def opened(path: str) -> Iterator[Connection]:
    """Open an existing queue for a block, and tell its faults in one line."""
    with blamed_on(path), closing(verbs.open_queue(path, create=False, journal_mode=None)) as con:
        yield con


@click.command()
@QUEUE
@click.option(
    "--journal-mode",
    type=click.Choice(get_args(JournalMode)),
    help="How the file is made safe: delete, with four syncs a commit, or wal, with one; by "
    "default as it is, delete for a new one.",
)
def init(path: str, journal_mode: JournalMode | None) -> None:
    """Create the queue file QUEUE, or bring an older one up to date.

    Jobs that are there stay as they are.
    """
    existed = os.path.lexists(path)
    with blamed_on(path):
        verbs.open_queue(path, journal_mode=journal_mode).close()
    click.echo(f"{shown(path)} is {'ready' if existed else 'a new queue'}")


@click.command()
@QUEUE
@JSON
def stats(path: str, as_json: bool) -> None:
    """Count the jobs of QUEUE by state.

    The keys of --json: jobs, pending, leased, done, dead, dead_reasons (deadline, exhausted,
    permanent), claims (ever made), redrives (ever made), next_due_ms (when a worker next has
    something to do, in milliseconds since 1970, or null).
    """
    with opened(path) as con:
        counts = verbs.stats(con)
    if as_json:
        print_json(counts)
        return
    due_ms = counts["next_due_ms"]
    reasons = [f"{number} {reason}" for reason, number in counts["dead_reasons"].items() if number]
    rows = (
        ("pending", counts["pending"], "" if due_ms is None else f"next due {_when(due_ms)}"),
        ("leased", counts["leased"], ""),
        ("done", counts["done"], ""),
        ("dead", counts["dead"], ", ".join(reasons)),
        ("jobs", counts["jobs"], f"{counts['claims']} claims, {counts['redrives']} redrives"),
    )
    width = max(len(str(number)) for _, number, _ in rows)
    for name, number, remark in rows:
        click.echo(f"{name:<7}  {number:>{width}}  {remark}".rstrip())


@click.command()
@QUEUE
@click.option("--status", type=click.Choice(get_args(verbs.Status)), help="Only this state.")
@click.option(
    "--reason", type=click.Choice(get_args(verbs.Reason)), help="Only what is dead for this."
)
@LIMIT
@AFTER
@JSON
def jobs(
    path: str,
    status: verbs.Status | None,
    reason: verbs.Reason | None,
    limit: int,
    after_seq: int | None,
    as_json: bool,
) -> None:
    """List the jobs of QUEUE in the order of their intake.

    NEXT is when a worker may take the job: now, in a while, or when its lease ends.

    With --json a line is a job with the keys seq, id, qty, status, attempts, max_attempts,
    token, available_at, deadline, owner, lease_until, reason; times are milliseconds since 1970.
    """
    with opened(path) as con:
        while limit and (page := _page(con, status, reason, after_seq, limit)):
            if as_json:
                for job in page:
                    print_json(job)
            else:
                print_table(_HEADER, [_row(job) for job in page], _NUMBERS)
            after_seq = page[-1]["seq"]
            limit -= len(page)
        if not limit and _page(con, status, reason, after_seq, 1):
            click.echo(f"There are more: --after {after_seq} or a larger --limit", err=True)


def _page(
    con: Connection,
    status: verbs.Status | None,
    reason: verbs.Reason | None,
    after_seq: int | None,
    limit: int,
) -> list[verbs.Job]:
    return verbs.list_jobs(
        con, status, reason=reason, after_seq=after_seq, max_jobs=min(limit, _PAGE)
    )


def _row(job: verbs.Job) -> tuple[object, ...]:
    is_open = job["status"] in ("pending", "leased")
    next_ms = job["available_at"] if job["status"] == "pending" else job["lease_until"]
    return (
        job["seq"],
        job["id"],
        job["qty"],
        job["status"],
        f"{job['attempts']}/{job['max_attempts']}",
        job["token"],
        _when(next_ms) if is_open and next_ms is not None else "-",
        _when(job["deadline"]) if is_open else "-",
        job["reason"] or "-",
        job["owner"] or "-",
    )


def _when(instant_ms: object) -> str:
    """Return an instant as it is seen from now, or what a stranger has put in its place."""
    if type(instant_ms) is not int:
        return str(instant_ms)
    ahead_ms = instant_ms - wall_ms()
    return f"in {span(ahead_ms)}" if ahead_ms > 0 else "now"
