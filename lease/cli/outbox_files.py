"""`lease outbox stats`, `pending`, `redrive` and `prune`: look at an outbox, and keep it small."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import click

from lease import outbox as verbs
from lease.cli._arguments import (
    AFTER,
    JSON,
    LIMIT,
    database_path,
    duration,
    whole,
)
from lease.cli._failures import Failure, absence, blamed_on, shown, typed
from lease.cli._output import print_json, print_table
from lease.cli._redriving import Order, carry_out, order_options
from lease.cli.queue_files import opened as opened_queue
from lease.clock import wall_ms
from lease.db.connection import connect
from lease.db.migrations import missing

OUTBOX = click.argument("path", type=database_path, metavar="OUTBOX")
QUEUE = click.option(
    "--queue",
    "queue_path",
    type=database_path,
    metavar="QUEUE",
    help="The queue, where it is a file of its own; by default it is in OUTBOX.",
)

_HEADER = ("SEQ", "ID", "TYPE", "RECORDED", "PUSHES", "JOB", "REASON")
_NUMBERS = {0, 4}
_PAGE = 1000
_CENTURY_MS = 100 * 366 * 86_400_000
# An application's own transactions may take a while.
_PATIENCE_S = 5


@click.command()
@OUTBOX
@QUEUE
@JSON
def stats(path: str, queue_path: str | None, as_json: bool) -> None:
    """Count the records of OUTBOX.

    The keys of --json: pending, dispatched (pending, and pushed to an accelerator),
    oldest_pending_at (UTC, or null), processed, dead (pending, and their job is dead; null
    where there is no queue).
    """
    with opened(path) as con, _queue_of(con, queue_path) as queue:
        counts = verbs.stats(con)
        dead = None if queue is None else _dead(con, queue)
    if as_json:
        print_json({**counts, "dead": dead})
        return
    oldest = counts["oldest_pending_at"]
    remarks = [f"the oldest since {oldest}"] if oldest else []
    remarks += [f"{dead} dead until they are redriven"] if dead else []
    width = max(len(str(counts[name])) for name in ("pending", "processed"))
    click.echo(f"pending    {counts['pending']:>{width}}  {', '.join(remarks)}".rstrip())
    click.echo(f"processed  {counts['processed']:>{width}}")


@click.command()
@OUTBOX
@QUEUE
@LIMIT
@AFTER
@JSON
def pending(
    path: str, queue_path: str | None, limit: int, after_seq: int | None, as_json: bool
) -> None:
    """List the pending records of OUTBOX.

    They come in the order of recording, with what became of their jobs.

    With --json a line is a record with the keys seq, id, event_type, created_at,
    dispatch_count, dispatched_at, job, reason; the last two are its job's state and why that is
    dead.
    """
    with opened(path) as con, _queue_of(con, queue_path) as queue:
        while limit and (page := _page(con, queue, after_seq, limit)):
            if as_json:
                for record in page:
                    print_json(record)
            else:
                print_table(_HEADER, [_row(record) for record in page], _NUMBERS)
            after_seq = page[-1]["seq"]
            limit -= len(page)
        if not limit and _page(con, queue, after_seq, 1):
            click.echo(f"There are more: --after {after_seq} or a larger --limit", err=True)


@click.command()
@OUTBOX
@QUEUE
@order_options
def redrive(path: str, queue_path: str | None, **asked: Any) -> None:
    """Send records again, though their jobs are dead.

    Name their IDs, or give --reason or --all, which concern the pending records of OUTBOX. Each
    job is released with a fresh budget of attempts and time, and an audit row with the note
    commits together with it. They are released in batches of a thousand, each of which is one
    transaction: what is interrupted leaves whole batches, and saying it again goes on. No job is
    released twice in one run, even if it dies again meanwhile.

    A job that was named and is not dead is told, the others are released, and the exit code is 1.

    The keys of --json: redriven (with --dry-run: that would be), refused, note, dry_run.
    """
    order = Order.of(**asked)
    with opened(path) as con, _queue_of(con, queue_path) as queue:
        if queue is None:
            raise Failure(f"{shown(path)} has no queue; name it with --queue")
        batches = order.batches(
            lambda reason, size: verbs.dead_ids(con, queue, reason, max_ids=size)
        )
        carry_out(order, queue, queue_path or path, batches, "to be sent again")


@click.command()
@OUTBOX
@click.option(
    "--older-than",
    "age_ms",
    type=duration(_CENTURY_MS),
    metavar="DURATION",
    required=True,
    help="Remove what was processed longer ago than this.",
)
@click.option(
    "--batch",
    type=whole(1, 1_000_000),
    metavar="N",
    default=1000,
    show_default=True,
    help="Remove so many in a transaction at most.",
)
@JSON
def prune(path: str, age_ms: int, batch: int, as_json: bool) -> None:
    """Remove old processed records of OUTBOX.

    Their deliveries go with them; pending records are never touched. An id that was removed is
    forgotten: recorded again it is a new event, which deliver will not send, since the queue
    remembers the job of that id. The keys of --json: removed.
    """
    before = max(0, wall_ms() - age_ms)
    removed = 0
    with opened(path) as con:
        while gone := verbs.prune(con, before, batch):
            removed += gone
    if as_json:
        print_json({"removed": removed})
    else:
        click.echo(f"{removed} removed")


@contextmanager
def opened(path: str) -> Iterator[sqlite3.Connection]:
    """Open a database that has an outbox for a block, and leave its settings alone."""
    if not os.path.isfile(path):
        missing_file = (
            f"there is no outbox at {shown(path)}; create it with: lease outbox init {typed(path)}"
        )
        raise Failure(absence(path, missing_file))
    with blamed_on(path), closing(connect(path, create=False, timeout_s=_PATIENCE_S)) as con:
        if missing(con, "outbox"):
            raise Failure(
                f"{shown(path)} holds no outbox of this version; choose another file, or put one "
                f"in it with: lease outbox init {typed(path)}"
            )
        yield con


@contextmanager
def _queue_of(
    con: sqlite3.Connection, queue_path: str | None
) -> Iterator[sqlite3.Connection | None]:
    """Yield the queue that was named, or the one beside the outbox, or None."""
    if queue_path is None:
        yield None if missing(con, "queue") else con
        return
    with opened_queue(queue_path) as queue:
        yield queue


def _dead(con: sqlite3.Connection, queue: sqlite3.Connection) -> int:
    dead, after_seq = 0, None
    while page := _page(con, queue, after_seq, _PAGE):
        dead += sum(record["job"] == "dead" for record in page)
        after_seq = page[-1]["seq"]
    return dead


def _page(
    con: sqlite3.Connection, queue: sqlite3.Connection | None, after_seq: int | None, limit: int
) -> list[verbs.Pending]:
    return verbs.list_pending(con, queue, after_seq=after_seq, max_rows=min(limit, _PAGE))


def _row(record: verbs.Pending) -> tuple[str, ...]:
    return (
        str(record["seq"]),
        record["id"],
        record["event_type"],
        record["created_at"],
        str(record["dispatch_count"]),
        record["job"] or "-",
        record["reason"] or "-",
    )
