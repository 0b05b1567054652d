"""`lease outbox deliver`: send what applications record, over HTTP."""

from contextlib import ExitStack

import click

from lease import outbox as verbs
from lease.cli._arguments import (
    ATTEMPTS,
    BACKOFF,
    BACKOFF_CAP,
    GIVE_UP,
    JSON,
    LEASE,
    OWNER,
    POLL,
    TIMEOUT,
    TO,
    TTL,
    check_times,
    random_owner,
)
from lease.cli._failures import giving_up, needs_extra, typed
from lease.cli._output import print_json, printable
from lease.cli._signals import stopped_by_signals
from lease.cli.outbox_files import OUTBOX, QUEUE, opened
from lease.cli.queue_files import opened as opened_queue

_STALE = "the answer came after the lease"


@click.command()
@OUTBOX
@TO
@QUEUE
@OWNER
@click.option("--drain", is_flag=True, help="End when nothing that is pending can be sent.")
@LEASE
@TIMEOUT
@BACKOFF
@BACKOFF_CAP
@POLL
@TTL
@ATTEMPTS
@GIVE_UP
@JSON
def deliver(
    path: str,
    url: str,
    queue_path: str | None,
    owner: str | None,
    drain: bool,
    lease_ms: int,
    timeout_ms: int,
    base_ms: int,
    cap_ms: int,
    poll_ms: int,
    ttl_ms: int,
    max_attempts: int,
    give_up_after: int,
    as_json: bool,
) -> None:
    """Send the pending records of OUTBOX to URL.

    Posts {"id": ..., "event_type": ..., "payload": ...}, one after the other. Each record is a
    job of the queue under its own id, with its attempts, its deadline and its quarantine; the
    record becomes processed together with its job. 'lease receive' takes such events at the
    path /events. Answers are judged as by 'lease work'.

    Without --drain it runs until SIGINT or SIGTERM, which end it after the job in hand; a
    second one ends it at once. With --drain the exit code is 1 if a record is still pending, and
    in any case if the receiver refuses everything.

    The keys of --json: done, pending, dead, leased, stale; how many sends left their job so.
    """
    check_times(lease_ms, timeout_ms, base_ms, cap_ms)
    with needs_extra("http", "outbox deliver"):
        from lease.delivery import HttpSender
    try:
        sender = HttpSender(url, timeout_s=timeout_ms / 1000)
    except ValueError as error:
        raise click.UsageError(f"--to: {error}") from error
    stop = verbs.Stop()
    with ExitStack() as stack:
        con = stack.enter_context(opened(path))
        queue = stack.enter_context(opened_queue(queue_path)) if queue_path else None
        stack.enter_context(sender)
        stack.enter_context(stopped_by_signals(stop.set))
        place = typed(path) + (f" --queue {typed(queue_path)}" if queue_path else "")
        stack.enter_context(giving_up(f"lease outbox redrive {place}"))
        tally = verbs.deliver(
            con,
            lambda record: sender.post(record["id"], verbs.document(record)),
            owner=owner or random_owner(),
            queue=queue,
            until="drained" if drain else "stopped",
            stop=stop,
            ttl_ms=ttl_ms,
            max_attempts=max_attempts,
            lease_ms=lease_ms,
            base_ms=base_ms,
            cap_ms=cap_ms,
            poll_ms=poll_ms,
            give_up_after=give_up_after or None,
            on_result=_tell,
        )
        left = verbs.stats(con)["pending"]
    if as_json:
        print_json(tally._asdict())
    else:
        click.echo(f"{tally.done} delivered, {left} pending")
    if drain and left:
        click.get_current_context().exit(1)


def _tell(result: verbs.Delivered) -> None:
    """Tell a send that did not succeed on stderr."""
    if result.status != "done":
        line = f"{result.id}: {result.error or _STALE}; its job is {result.status}"
        click.echo(printable(line), err=True)
