"""`lease redrive`: put dead jobs back in line, by their ids or by what they died of."""

from typing import Any

import click

from lease import jobs
from lease.cli._arguments import QUEUE
from lease.cli._redriving import Order, carry_out, order_options
from lease.cli.queue_files import opened


@click.command()
@QUEUE
@order_options
def redrive(path: str, **asked: Any) -> None:
    """Release dead jobs of QUEUE, each with a fresh budget of attempts and time.

    Name their IDs, or give --reason or --all. An audit row with the note commits together with
    each job. They are released in batches of a thousand, each of which is one transaction: what
    is interrupted leaves whole batches, and saying it again goes on. No job is released twice in
    one run, even if it dies again meanwhile.

    A job that was named and is not dead is told, the others are released, and the exit code is 1.

    The keys of --json: redriven (with --dry-run: that would be), refused, note, dry_run.
    """
    order = Order.of(**asked)
    with opened(path) as con:
        batches = order.batches(lambda reason, size: jobs.dead_ids(con, reason, max_ids=size))
        carry_out(order, con, path, batches, "pending again")
