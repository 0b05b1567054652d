"""`lease work`: deliver the jobs of a queue over HTTP."""

import sys

import click

from lease.cli._arguments import (
    BACKOFF,
    BACKOFF_CAP,
    GIVE_UP,
    JSON,
    LEASE,
    OWNER,
    POLL,
    QUEUE,
    TIMEOUT,
    TO,
    check_times,
    random_owner,
    whole,
)
from lease.cli._failures import Failure, blamed_on, giving_up, needs_extra, shown, typed
from lease.cli._output import print_json
from lease.cli._progress import Progress
from lease.cli._signals import stopped_by_signals
from lease.cli.queue_files import opened
from lease.clock import SteadyClock
from lease.db.migrations import has
from lease.dispatcher import MAX_CONCURRENCY, Dispatcher, Tally, Until
from lease.jobs import stats


@click.command()
@QUEUE
@TO
@OWNER
@click.option("--once", is_flag=True, help="End after one job, or at once if none is due.")
@click.option("--drain", is_flag=True, help="End when no job is pending or leased.")
@click.option(
    "--concurrency",
    type=whole(1, MAX_CONCURRENCY),
    metavar="N",
    default=8,
    show_default=True,
    help="How many jobs are sent at a time; 1 keeps them in order.",
)
@LEASE
@TIMEOUT
@BACKOFF
@BACKOFF_CAP
@POLL
@GIVE_UP
@JSON
def work(
    path: str,
    url: str,
    owner: str | None,
    once: bool,
    drain: bool,
    concurrency: int,
    lease_ms: int,
    timeout_ms: int,
    base_ms: int,
    cap_ms: int,
    poll_ms: int,
    give_up_after: int,
    as_json: bool,
) -> None:
    """Deliver the jobs of QUEUE: post {"id": ..., "qty": ...} to URL, several at a time.

    A job is done when the answer is a 2xx with {"accepted": true}. It is tried again after no
    answer, a redirect, 408, 425, 429 and 5xx, and dead after any other 4xx. Anything else leaves it
    leased until its lease ends, and then it is tried again.

    Any number of workers may share a queue and take turns at it, by the files QUEUE-gate1 and
    QUEUE-gate2 beside it. The lease of a slow send is renewed for as long as the job lives.

    Without --once or --drain it runs until SIGINT or SIGTERM, which end it after the jobs in
    hand; a second one ends it at once. With --once the exit code is 1 unless the job is done,
    with --drain if a job died meanwhile, and in any case if the receiver refuses everything.

    The keys of --json: done, pending, dead, leased, stale; how many sends left their job so.
    """
    if once and drain:
        raise click.UsageError("--once and --drain exclude each other")
    check_times(lease_ms, timeout_ms, base_ms, cap_ms)
    with needs_extra("http", "work"):
        from lease.delivery import HttpSender
    try:
        sender = HttpSender(url, timeout_s=timeout_ms / 1000)
    except ValueError as error:
        raise click.UsageError(f"--to: {error}") from error
    _refuse_outbox(path)
    until: Until = "once" if once else "drained" if drain else "stopped"
    dead_before = _dead(path) if drain else 0
    with sender, Progress(sys.stderr) as progress:
        dispatcher = Dispatcher(
            path,
            sender,
            owner=owner or random_owner(),
            concurrency=concurrency,
            lease_ms=lease_ms,
            base_ms=base_ms,
            cap_ms=cap_ms,
            poll_ms=poll_ms,
            give_up_after=give_up_after or None,
            clock=SteadyClock(on_step_back=progress.tell_step_back),
            on_result=progress.tell_result,
            on_idle=progress.tell_idle,
            on_trouble=progress.tell_trouble,
        )
        redrive = f"lease redrive {typed(path)}"
        with stopped_by_signals(dispatcher.stop), blamed_on(path), giving_up(redrive):
            tally = dispatcher.run(until)
    _print(tally, as_json=as_json)
    if (once and sum(tally) > tally.done) or (drain and _dead(path) > dead_before):
        click.get_current_context().exit(1)


def _refuse_outbox(path: str) -> None:
    """An outbox's jobs stand for records: without their payload they would count as delivered."""
    with opened(path) as con:
        if has(con, "outbox"):
            raise Failure(
                f"{shown(path)} holds an outbox, whose records go out with: "
                f"lease outbox deliver {typed(path)} --to URL"
            )


def _dead(path: str) -> int:
    with opened(path) as con:
        return stats(con)["dead"]


def _print(tally: Tally, *, as_json: bool) -> None:
    if as_json:
        print_json(tally._asdict())
        return
    words = {
        "done": "done",
        "pending": "to be tried again",
        "dead": "dead",
        "leased": "without a clear answer",
        "stale": "too late",
    }
    counts = [f"{number} {words[name]}" for name, number in tally._asdict().items() if number]
    click.echo(", ".join(counts) or "nothing was due")
