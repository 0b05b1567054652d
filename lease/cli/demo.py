"""`lease demo`: the promise shown with real processes, and the evidence of it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from lease import checks
from lease.cli._arguments import JSON
from lease.cli._failures import Failure, needs_extra, shown, typed
from lease.cli._output import print_json, print_table

if TYPE_CHECKING:
    from lease.demo import Check, Evidence, JobEvidence

_HEADER = ("", "JOBS", "DONE", "CLAIMS", "SENT", "REQUESTS", "INBOX ROWS", "EFFECTS")
_NUMBERS = set(range(1, len(_HEADER)))


@click.command()
@click.option(
    "--keep",
    "keep",
    type=click.Path(),
    metavar="DIR",
    help="Leave queue.db, inbox.db and the logs in this new or empty folder.",
)
@click.option(
    "--to", "url", metavar="URL", help="Prove this receiver, instead of one that is started."
)
@JSON
def demo(keep: str | None, url: str | None, as_json: bool) -> None:
    """Show with real processes that a death between sent and recorded doubles nothing.

    Two dispatchers deliver to a receiver over HTTP. The first is killed right after the receiver
    has committed one of its jobs; the second takes over when the lease ends. Then the databases
    are read, and the exit code is 1 if anything that is promised does not hold.

    With --to the receiver's database cannot be seen: the queue's side is proved, and you are
    told which job to look for on the other.

    The keys of --json: verdict (held or failed), checks (text, holds), killed (job, code, status,
    token, committed), jobs (id, qty, status, token, sends, requests, inbox, effects), strangers,
    seconds.
    """
    with needs_extra("http", "demo"):
        from lease.demo import DemoError, judge, run_demo
    if url is not None:
        try:
            checks.url("it", url)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--to") from error

    def tell(at_s: float, who: str, text: str) -> None:
        if not as_json:
            style = {"fg": "red", "bold": True} if who == "SIGKILL" else {"bold": True}
            click.echo(f"{at_s:5.1f} s  {click.style(f'{who:<11}', **style)}  {text}")

    started_s = time.monotonic()
    with _interrupted_by_signals(), _folder(keep) as folder:
        try:
            evidence = run_demo(folder, url, tell)
        except DemoError as error:
            raise Failure(f"the demo could not be played to its end: {error}") from error
    found = judge(evidence)
    held = all(check.holds for check in found)
    seconds = round(time.monotonic() - started_s, 1)
    if as_json:
        _print_json(evidence, found, held=held, seconds=seconds)
    else:
        _print_report(evidence, found, held=held)
        if keep is not None:
            click.echo(f"\nLook for yourself: lease jobs {typed(os.path.join(keep, 'queue.db'))}")
    if not held:
        click.get_current_context().exit(1)


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    if keep is None:
        with TemporaryDirectory(prefix="lease-demo-") as folder:
            yield folder
        return
    try:
        os.makedirs(keep, exist_ok=True)
        is_empty = not os.listdir(keep)
    except OSError as error:
        raise Failure(f"{shown(keep)} cannot be used: {error.strerror}") from error
    if not is_empty:
        raise Failure(f"{shown(keep)} is not empty; name another folder")
    yield os.path.abspath(keep)


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Clean up at SIGTERM and SIGHUP as at Ctrl-C."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_json(evidence: "Evidence", found: "list[Check]", *, held: bool, seconds: float) -> None:
    print_json(
        {
            "verdict": "held" if held else "failed",
            "checks": [check._asdict() for check in found],
            "killed": evidence.kill._asdict(),
            "jobs": [job._asdict() for job in evidence.jobs],
            "strangers": evidence.strangers,
            "seconds": seconds,
        }
    )


def _print_report(evidence: "Evidence", found: "list[Check]", *, held: bool) -> None:
    killed = evidence.kill.job
    seen = evidence.kill.committed is not None
    others = [job for job in evidence.jobs if job.id != killed]
    rows = [
        _row(killed, [job for job in evidence.jobs if job.id == killed]),
        _row(f"the other {len(others)}", others),
    ]
    columns = len(_HEADER) if seen else _HEADER.index("REQUESTS")
    click.echo()
    print_table(_HEADER[:columns], [row[:columns] for row in rows], _NUMBERS)
    click.echo()
    for check in found:
        word = click.style("holds", fg="green") if check.holds else click.style("FAILS", fg="red")
        click.echo(f"{word}  {check.text}")
    click.echo()
    if not held:
        click.secho("FAILED: the evidence does not bear out the promise.", fg="red", bold=True)
    elif seen:
        click.secho(f"HELD: {killed} was sent twice and had one effect.", fg="green", bold=True)
    else:
        click.secho(f"HELD, as far as the queue can tell: {killed} was sent twice.", bold=True)
        click.echo(f"Now look at your receiver: it must have made one effect of {killed}.")


def _row(name: str, jobs: "list[JobEvidence]") -> tuple[str, ...]:
    numbers = (
        len(jobs),
        sum(job.status == "done" for job in jobs),
        sum(job.token for job in jobs),
        sum(job.sends for job in jobs),
        sum(job.requests or 0 for job in jobs),
        sum(len(job.inbox or ()) for job in jobs),
        sum(len(job.effects or ()) for job in jobs),
    )
    return (name, *map(str, numbers))
