"""What the commands that release dead jobs share: which ones, in batches, and the counts."""

import sqlite3
import sys
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple, Self, TypeVar, get_args

import click

from lease import jobs as verbs
from lease.cli._arguments import JSON, TTL, identifier
from lease.cli._failures import Failure, shown
from lease.cli._output import print_json, printable
from lease.cli._ticker import Ticker
from lease.clock import wall_ms
from lease.db.locked import is_locked

# So many jobs a transaction: others wait for it for some hundredths of a second.
_BATCH = 1000

# Each try at a lock has already waited for SQLite's own time-out.
_TRIES = 10

_MAX_TOLD = 20

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("ids", type=identifier, nargs=-1, metavar="[ID]..."),
    click.option(
        "--reason",
        type=click.Choice(get_args(verbs.Reason)),
        help="Release all that are dead for this reason.",
    ),
    click.option("--all", "everything", is_flag=True, help="Release all that are dead."),
    click.option("--note", type=identifier, metavar="NAME", help="The reason, for the audit rows."),
    TTL,
    click.option("--dry-run", is_flag=True, help="Tell how many, and change nothing."),
    JSON,
)


def order_options(command: _Command) -> _Command:
    """Give a command the options of an `Order`."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


class Order(NamedTuple):
    """What the operator asks for."""

    ids: tuple[str, ...]
    reason: verbs.Reason | None
    everything: bool
    note: str | None
    ttl_ms: int
    dry_run: bool
    as_json: bool

    @classmethod
    def of(cls, **asked: Any) -> Self:
        """Return the order, unless it is none or a contradiction."""
        order = cls(**asked)
        if bool(order.ids) + bool(order.reason) + order.everything != 1:
            raise click.UsageError("give either IDs, or --reason, or --all")
        if order.note is None and not order.dry_run:
            raise click.UsageError("--note is missing: the reason, for the audit rows")
        return order

    def batches(
        self, dead_ids: Callable[[verbs.Reason | None, int], Iterable[list[str]]]
    ) -> Iterable[list[str]]:
        """Return the ids in batches: those that were named, each once, or those that are dead.

        Args:
            dead_ids: returns the batches of what is dead for a reason, none larger than told.
        """
        if not self.ids:
            return dead_ids(self.reason, _BATCH)
        named = list(dict.fromkeys(self.ids))
        return [named[at : at + _BATCH] for at in range(0, len(named), _BATCH)]


def carry_out(
    order: Order,
    queue: sqlite3.Connection,
    path: str,
    batches: Iterable[list[str]],
    state: str,
) -> None:
    """Release batch by batch, each in a transaction of its own, and tell the counts.

    Args:
        order: what is asked for.
        queue: a connection to the queue.
        path: its file, for messages.
        batches: the ids.
        state: what a job is once it was released, in words.
    """
    released = 0
    refused: list[str] = []
    with Ticker(sys.stderr) as ticker:
        for ids in batches:
            releases = _release(order, queue, ids)
            released += releases.count("redriven")
            # Of those that were found dead somebody else may have released some meanwhile.
            if order.ids:
                refused += filter(None, map(_why_not, ids, releases))
            ticker.draw(f"{released} {state}")
    if len(refused) == 1 and not released and not order.as_json:
        raise Failure(f"{shown(path)}: {refused[0]}")
    _tell_refused(path, refused)
    _print(order, released, len(refused), state)


def _release(order: Order, queue: sqlite3.Connection, ids: list[str]) -> list[verbs.Release]:
    if order.note is None or order.dry_run:
        return verbs.redrive_check(queue, ids)
    tries = 0
    while True:
        try:
            return verbs.redrive_many(queue, ids, wall_ms(), order.ttl_ms, order.note)
        except sqlite3.OperationalError as error:
            # Among busy workers a batch may miss its turn; nothing of it has been done then.
            tries += 1
            if tries == _TRIES or not is_locked(error):
                raise


def _why_not(job_id: str, release: verbs.Release) -> str | None:
    if release == "redriven":
        return None
    if release == "missing":
        return f"there is no job {job_id}"
    return f"job {job_id} is {release}; only a dead job can be redriven"


def _tell_refused(path: str, refused: list[str]) -> None:
    for line in refused[:_MAX_TOLD]:
        click.echo(printable(f"{shown(path)}: {line}"), err=True)
    if len(refused) > _MAX_TOLD:
        click.echo("Further ones are counted, not told", err=True)


def _print(order: Order, released: int, refused: int, state: str) -> None:
    if order.as_json:
        print_json(
            {
                "redriven": released,
                "refused": refused,
                "note": order.note,
                "dry_run": order.dry_run,
            }
        )
    elif order.dry_run:
        others = f", {refused} cannot" if refused else ""
        click.echo(f"{released} can be redriven{others}; nothing was changed")
    elif len(order.ids) == 1:
        click.echo(f"{order.ids[0]} is {state}")
    else:
        click.echo(f"{released} {state}" + (f", {refused} refused" if refused else ""))
    if refused:
        click.get_current_context().exit(1)
